"""``flightsvc checklist …``: check a list, explain a code, replay a trace, print the table."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from flightsvc.checklist.explain import explain
from flightsvc.checklist.loading import load_checklist
from flightsvc.checklist.model import Checklist
from flightsvc.checklist.page import html
from flightsvc.checklist.render import markdown
from flightsvc.checklist.report import summary, text
from flightsvc.checklist.simulate import simulate
from flightsvc.checklist.trace import Request, read_trace
from flightsvc.errors import SettingsError
from flightsvc.settings import Settings, load_settings

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

COMMAND = "checklist"
#: how long the smaller model takes in a simulation, in ms
SMALLER_MS = 500
_FILE = "a checklist file of your own (default: FLIGHTSVC_CHECKLIST_FILE)"


def add_parser(subparsers: Subparsers) -> None:
    """Add the sub-command; its parsed arguments carry ``run``, which takes them."""
    parser = subparsers.add_parser(COMMAND, help="check, explain, replay and print the checklist")
    commands = parser.add_subparsers(metavar="what", required=True)

    check = commands.add_parser("check", help="say whether a list can be served")
    check.add_argument("file", nargs="?", metavar="FILE", help=_FILE)
    check.set_defaults(run=run_check)

    explaining = commands.add_parser("explain", help="show a code and where each value comes from")
    explaining.add_argument("code", metavar="CODE")
    explaining.add_argument("--file", metavar="FILE", help=_FILE)
    explaining.set_defaults(run=run_explain)

    replay = commands.add_parser("simulate", help="replay a recorded trace against the list")
    replay.add_argument(
        "trace", metavar="TRACE.jsonl", help="one request a line; -: standard input"
    )
    replay.add_argument("--file", metavar="FILE", help=_FILE)
    replay.add_argument(
        "--smaller-ms",
        type=_milliseconds,
        default=SMALLER_MS,
        metavar="MS",
        help="how long the smaller model takes where the trace does not say; "
        "none: there is no smaller model (default: %(default)s)",
    )
    replay.add_argument("--json", action="store_true", help="print JSON")
    replay.set_defaults(run=run_simulate)

    table = commands.add_parser("table", help="print the list for reviewers")
    table.add_argument("--html", action="store_true", help="a whole page instead of Markdown")
    table.add_argument("--file", metavar="FILE", help=_FILE)
    table.set_defaults(run=run_table)


def run_check(args: argparse.Namespace) -> int:
    """Say what is wrong, or that nothing is."""
    settings = _settings(args.file)
    checklist = load_checklist(settings)
    changed = sum(not place.ours for place in checklist.origins.places.values())
    named = settings.checklist_file or "the shipped checklist"
    own = f", {changed} of its values yours" if settings.checklist_file else ""
    print(f"{named}: nothing is wrong: {len(checklist.codes)} codes{own}.")
    return 0


def run_explain(args: argparse.Namespace) -> int:
    """Show one code."""
    checklist = _load(args.file)
    try:
        print(explain(checklist, args.code), end="")
    except KeyError as error:
        raise SettingsError(str(error.args[0])) from None
    return 0


def run_simulate(args: argparse.Namespace) -> int:
    """Replay a trace."""
    settings = _settings(args.file)
    played = simulate(
        _trace(args.trace), load_checklist(settings), settings, smaller_ms=args.smaller_ms
    )
    found = summary(played)
    print(json.dumps(found, indent=2) if args.json else text(found), end="\n" * args.json)
    return 0


def run_table(args: argparse.Namespace) -> int:
    """Print the list."""
    checklist = _load(args.file)
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print(html(checklist) if args.html else markdown(checklist), end="")
    return 0


def _settings(file: str | None) -> Settings:
    settings = load_settings()
    return settings.model_copy(update={"checklist_file": file}) if file else settings


def _load(file: str | None) -> Checklist:
    return load_checklist(_settings(file))


def _trace(name: str) -> list[Request]:
    try:
        if name == "-":
            return read_trace(sys.stdin, "standard input")
        with Path(name).open(encoding="utf-8") as lines:
            return read_trace(lines, name)
    except OSError as error:
        raise SettingsError(f"{name} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{name} is not UTF-8: save it so.") from None


def _milliseconds(given: str) -> int | None:
    if given == "none":
        return None
    try:
        value = int(given)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError("must be a whole number of ms, or none")
    return value
