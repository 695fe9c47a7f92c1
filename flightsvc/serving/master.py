"""The gunicorn master: settings, checklist, listen addresses, the embedded Valkey.

Settings and checklist are read here only. A worker gets them by the fork, so what was valid when
the master read it cannot stop a worker later. At HUP the master reads both again; if one is not
valid, both are refused, the fault is named in the log, and the last good copies stay.

After USR2 two masters live side by side, each with an embedded Valkey of its own, which ends with
its master. So flights are not shared between the old and the new workers for that while, and the
new ones start with nothing to replay. Deployments that mind name a Redis.
"""

from __future__ import annotations

import math
import os
import sys
from typing import Any, NoReturn

from gunicorn.arbiter import Arbiter
from gunicorn.util import parse_address
from gunicorn.workers.base import Worker

from flightsvc._version import __version__
from flightsvc.checklist import Checklist, load_checklist
from flightsvc.embedded import EmbeddedValkey
from flightsvc.errors import SettingsError
from flightsvc.serving import addresses, worker
from flightsvc.serving.hints import first_request
from flightsvc.settings import Settings, load_settings

#: environment of `make run`: a person looks on
HINTS = "_FLIGHTSVC_HINTS"
#: what gunicorn waits longer than the workers' own drain, in s; then it kills
KILL_MARGIN_S = 5


class Master:
    """What the master keeps while gunicorn loads its configuration again and again."""

    def __init__(self) -> None:
        self.settings: Settings | None = None
        self.checklist: Checklist | None = None
        #: why the newest settings, or the newest checklist, were refused
        self.refusal = ""
        self.valkey: EmbeddedValkey | None = None
        #: gunicorn's own, once it starts
        self.arbiter: Arbiter | None = None

    def read_settings(self) -> Settings:
        """Read settings and checklist; at a reload keep the last good copies if these cannot
        serve."""
        self.refusal = ""
        if self.settings is None:
            self.settings, self.checklist = _read_or_exit()
            return self.settings
        try:
            fresh = load_settings()
            checklist = load_checklist(fresh)
            self._check_reload(fresh)
        except Exception as problem:  # whatever it is, it must not stop a running service
            self.refusal = str(problem)
        else:
            self.settings, self.checklist = fresh, checklist
        return self.settings

    def _check_reload(self, fresh: Settings) -> None:
        assert self.settings is not None
        if self.arbiter is None:
            return
        cfg = self.arbiter.cfg
        overridden = cfg.address != _parsed(self.settings.bind)
        listening = cfg.address if overridden else _parsed(fresh.bind)
        require_private(fresh, listening)
        unusable = [] if overridden else addresses.unusable(listening, cfg.address)
        if unusable:
            raise SettingsError(f"FLIGHTSVC_BIND: cannot listen on {', '.join(unusable)}")
        self.start_valkey(fresh, cfg.uid, cfg.gid)

    def start_valkey(self, settings: Settings, uid: int, gid: int) -> None:
        """Start the embedded Valkey if these settings want one and none runs."""
        if settings.redis_url or settings.mode == "local" or self.valkey is not None:
            return
        valkey = EmbeddedValkey()
        valkey.start(uid=uid, gid=gid)
        self.valkey = valkey


_master = Master()


def handed_settings() -> Settings | None:
    """The settings that this process's master read; None under another server."""
    return _master.settings


def handed_checklist() -> Checklist | None:
    """The checklist that goes with :func:`handed_settings`; None under another server."""
    return _master.checklist


def configure() -> dict[str, Any]:
    """gunicorn's settings and hooks, read anew at every HUP.

    Wrong settings end the process with one line; at a HUP they are refused.
    """
    settings = _master.read_settings()
    return {
        "wsgi_app": "flightsvc.wsgi:app",
        "bind": settings.bind,
        "workers": settings.workers,
        "worker_class": "gevent",
        "worker_connections": settings.worker_connections,
        "graceful_timeout": math.ceil(settings.grace_s) + KILL_MARGIN_S,
        "logger_class": "flightsvc.serving.gunicorn_logger.ServiceLogger",
        "control_socket_disable": True,  # its default path is shared by all instances of a user
        "on_starting": on_starting,
        "when_ready": when_ready,
        "on_reload": on_reload,
        "on_exit": on_exit,
        "pre_fork": pre_fork,
        "post_fork": post_fork,
        "post_worker_init": worker.post_worker_init,
        "worker_exit": worker.worker_exit,
    }


def on_starting(arbiter: Arbiter) -> None:
    """Before the first socket is opened."""
    settings = _settings()
    try:
        require_private(settings, arbiter.cfg.address)
        _master.start_valkey(settings, arbiter.cfg.uid, arbiter.cfg.gid)
    except SettingsError as problem:
        _give_up(arbiter, problem)
    _master.arbiter = arbiter
    _look_after_valkey(arbiter)
    if os.environ.get(HINTS):  # a person's terminal: closing it means to end, not to reload
        arbiter.handle_hup = arbiter.handle_term
    _forget_configuration()


def _look_after_valkey(arbiter: Arbiter) -> None:
    """gunicorn has no hook for its once-a-second look at the workers: join that."""
    look_at_workers = arbiter.murder_workers

    def look() -> None:
        look_at_workers()
        valkey = _master.valkey
        try:
            if valkey is not None and valkey.revive():
                arbiter.log.error("The embedded Valkey's supervisor was killed; both run again")
        except SettingsError as problem:
            arbiter.log.error("%s", problem)

    arbiter.murder_workers = look


def when_ready(arbiter: Arbiter) -> None:
    """Sockets are open, no worker runs yet."""
    listening = addresses.bound(arbiter.LISTENERS) or arbiter.cfg.address
    try:
        # sockets handed down by systemd or over USR2 need not be what the settings say
        require_private(_settings(), listening)
    except SettingsError as problem:
        _give_up(arbiter, problem)
    arbiter.log.info(
        "flightsvc %s, %s, asks the %s model", __version__, _coordination(), _settings().provider
    )
    if os.environ.get(HINTS):
        print(first_request(listening, tokens=bool(_settings().api_tokens)), flush=True)


def on_reload(arbiter: Arbiter) -> None:
    """After HUP: the configuration was loaded again, new workers come next."""
    _forget_configuration()
    if _master.refusal:
        said = "The last good settings stay, and their checklist. Refused: %s"
        arbiter.log.error(said, _master.refusal)
    else:
        arbiter.log.info("Settings and checklist read again")


def on_exit(_arbiter: Arbiter) -> None:
    """Workers are gone. (A master that comes to another end is noticed by the supervisor.)"""
    if _master.valkey is not None:
        _master.valkey.stop()


def pre_fork(arbiter: Arbiter, newcomer: Worker) -> None:
    """Give each worker the lowest number that no living worker has: it names its metrics."""
    taken = {getattr(other, "slot", None) for other in arbiter.WORKERS.values()}
    newcomer.slot = next(number for number in range(len(taken) + 1) if number not in taken)


def post_fork(_arbiter: Arbiter, newcomer: Worker) -> None:
    """In the worker: hand on what is no setting. The master's own environment stays clean, for
    USR2 would hand it to the next master."""
    os.environ[worker.SLOT] = str(newcomer.slot)
    if _master.valkey is not None:
        os.environ[worker.EMBEDDED_URL] = _master.valkey.url
    else:
        os.environ.pop(worker.EMBEDDED_URL, None)


def require_private(settings: Settings, listening: list[Any]) -> None:
    """Without tokens, nobody outside this machine may ask.

    :raises SettingsError: names the addresses that other machines can reach.
    """
    reachable = [] if settings.api_tokens else addresses.public(listening)
    if reachable:
        raise SettingsError(
            f"Without FLIGHTSVC_API_TOKENS the service serves loopback only, not "
            f"{', '.join(reachable)}: set FLIGHTSVC_API_TOKENS, or bind (FLIGHTSVC_BIND, -b) "
            f"to 127.0.0.1 or a unix socket."
        )


def _settings() -> Settings:
    assert _master.settings is not None, "configure() comes first"
    return _master.settings


def _coordination() -> str:
    settings = _settings()
    if settings.mode == "local":
        return "each worker for itself"
    if settings.redis_url:
        return f"coordinated by Redis, mode {settings.mode}"
    return f"coordinated by an embedded Valkey, mode {settings.mode}"


def _forget_configuration() -> None:
    """Have gunicorn run the installed configuration again at HUP: it imports it, a file it runs."""
    sys.modules.pop("flightsvc.gunicorn_conf", None)


def _parsed(bind: str) -> list[Any]:
    """An address list as gunicorn understands it."""
    return [parse_address(part.strip()) for part in bind.split(",") if part.strip()]


def _read_or_exit() -> tuple[Settings, Checklist]:
    try:
        settings = load_settings()
        return settings, load_checklist(settings)
    except SettingsError as problem:
        print(f"flightsvc cannot start: {problem}", file=sys.stderr, flush=True)
        sys.exit(1)


def _give_up(arbiter: Arbiter, problem: SettingsError) -> NoReturn:
    if _master.valkey is not None:
        _master.valkey.stop()
    if arbiter.pidfile is not None:
        arbiter.pidfile.unlink()
    print(f"flightsvc cannot start: {problem}", file=sys.stderr, flush=True)
    sys.exit(1)
