"""``flightsvc module …``: operators pause stages and providers of all workers."""

from __future__ import annotations

import argparse
import getpass
import json
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flightsvc.errors import RequestError, SettingsError
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings, load_settings
from flightsvc.store import StoreError, open_store
from flightsvc.store.modules import Modules
from flightsvc.store.names import SharedNames
from flightsvc.store.switches import LONGEST_NAME, Switches

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

#: longest wait for Redis, in ms: nobody else waits behind this command
PATIENCE_MS = 3_000


def add_parser(subparsers: Subparsers) -> None:
    """Add the sub-command; its parsed arguments carry ``run``, which takes them."""
    parser = subparsers.add_parser(
        "module",
        help="pause and resume stages and providers of all workers",
        description="Pause and resume stages and providers of all workers that share a Redis. "
        "Settings as for the service: FLIGHTSVC_REDIS_URL, FLIGHTSVC_NAMESPACE, …",
    )
    commands = parser.add_subparsers(metavar="action", required=True)
    for name, act, says, needs_reason in _ACTIONS:
        command = commands.add_parser(name, help=says, description=says)
        command.add_argument("name", metavar="NAME", help="such as stage:evaluation or openai")
        if needs_reason:
            command.add_argument("--reason", required=True, help="why, for whoever wonders later")
        command.add_argument("--by", default="", help="who does it (default: user@host)")
        command.set_defaults(run=run, act=act)
    listing = commands.add_parser("list", help="show all modules", description="Show all modules.")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(run=run, act=_list)


def run(args: argparse.Namespace) -> int:
    """Do one action.

    :returns: 0, or 1 if Redis is out of reach, or 2 for a wrong name or reason.
    """
    logging.getLogger("flightsvc").addHandler(logging.NullHandler())  # the answer says it all
    settings = _settings()
    store = open_store(settings, Metrics.off())
    try:
        switches = Switches(store, SharedNames(settings.namespace), Modules.of(settings))
        done = "Nothing was changed."
        switches.snapshot()  # so that a Redis out of reach leaves no doubt
        if args.act is not _list:
            done = "It is not known whether it was done: see `flightsvc module list`."
        print(args.act(switches, args))
    except StoreError as error:
        what = "is out of reach" if error.unreachable else "refuses"
        print(f"flightsvc module: Redis {what}: {error}. {done}", file=sys.stderr)
        return 1
    except RequestError as error:
        print(f"flightsvc module: {error}", file=sys.stderr)
        return 2
    finally:
        store.close()
    return 0


def _settings() -> Settings:
    """
    :raises SettingsError: they are wrong, or name no Redis.
    """
    settings = load_settings()
    if settings.mode == "local":
        raise SettingsError("FLIGHTSVC_MODE is local: workers share nothing that could be paused.")
    if not settings.redis_url:
        raise SettingsError(
            "FLIGHTSVC_REDIS_URL is not set: name the Redis of the service. An embedded Valkey is "
            "reached through the service only: set FLIGHTSVC_OPERATOR_TOKENS, and use /v1/modules."
        )
    patience_ms = max(settings.redis_timeout_ms, PATIENCE_MS)
    return settings.model_copy(update={"redis_timeout_ms": patience_ms})


def _pause(switches: Switches, args: argparse.Namespace) -> str:
    pause = switches.pause(args.name, by=_who(args), reason=args.reason)
    return f"{pause.module} is paused."


def _resume(switches: Switches, args: argparse.Namespace) -> str:
    was = switches.resume(args.name, by=_who(args))
    return f"{_full(switches, args)} {'takes calls again' if was else 'was not paused'}."


def _ack(switches: Switches, args: argparse.Namespace) -> str:
    was = switches.ack(args.name, by=_who(args))
    return f"{_full(switches, args)} {'needs nobody any more' if was else 'needed nobody'}."


def _roll_back(switches: Switches, args: argparse.Namespace) -> str:
    back = switches.roll_back(args.name, by=_who(args), reason=args.reason)
    return f"{back.module} asks its former model."


def _restore(switches: Switches, args: argparse.Namespace) -> str:
    was = switches.restore(args.name, by=_who(args))
    return f"{_full(switches, args)} {'asks its model again' if was else 'was not rolled back'}."


def _list(switches: Switches, args: argparse.Namespace) -> str:
    snapshot = switches.snapshot()
    modules = [snapshot.describe(name) for name in switches.modules.names]
    if args.json:
        return json.dumps({"modules": modules}, ensure_ascii=False, indent=2)
    width = max(len(module["name"]) for module in modules)
    lines = [f"{module['name']:<{width}}  {said}" for module in modules for said in _lines(module)]
    return "\n".join(lines)


def _lines(module: dict[str, Any]) -> Iterator[str]:
    pause, flag, back = module["paused"], module["needs_person"], module["rolled_back"]
    if pause:
        yield f"paused since {pause['since']} by {pause['by']}: {pause['reason']}"
    if flag:
        yield f"needs a person since {flag['since']}: {flag['failures']} × {flag['code']} in a row"
    if back:
        yield f"rolled back since {back['since']} by {back['by']}: {back['reason']}"
    if not (pause or flag or back):
        yield "takes calls"


def _full(switches: Switches, args: argparse.Namespace) -> str:
    return switches.modules.resolve(args.name)


def _who(args: argparse.Namespace) -> str:
    if args.by:
        return str(args.by)
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        user = "unknown"
    return f"{user}@{socket.gethostname()}"[:LONGEST_NAME]


_ACTIONS: tuple[tuple[str, Callable[[Switches, argparse.Namespace], str], str, bool], ...] = (
    ("pause", _pause, "take no more calls of a module; those in the air finish", True),
    ("resume", _resume, "take calls again, and forget its failures in a row", False),
    ("ack", _ack, "say that a person has come; a pause stays", False),
    ("roll-back", _roll_back, "let a stage ask its former model", True),
    ("restore", _restore, "let a stage ask its present model again", False),
)
