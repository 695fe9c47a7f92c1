"""``flightsvc model-server``: the command around :class:`ModelServer`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import gevent
from gevent.event import Event
from gevent.socket import wait_read

from flightsvc.errors import SettingsError
from flightsvc.model_server.rules import Script, read_script
from flightsvc.model_server.server import ModelServer

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

COMMAND = "model-server"


def add_parser(subparsers: Subparsers) -> None:
    """Add the sub-command; its parsed arguments carry ``run``, which takes them."""
    parser = subparsers.add_parser(COMMAND, help="run a scripted model server, for tests and demos")
    _add_arguments(parser)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command alone; returns the exit code."""
    parser = argparse.ArgumentParser(prog=f"flightsvc {COMMAND}")
    _add_arguments(parser)
    return run(parser.parse_args(argv))


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT (or, if wanted, until standard input ends)."""
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, stop.set)
    try:
        server = ModelServer(args.bind, _script(args.script))
        address = server.start()
    except (SettingsError, OSError) as error:
        print(f"{COMMAND}: {error}", file=sys.stderr)
        return 1
    if args.stop_with_stdin:
        gevent.spawn(_stop_with_stdin, stop)
    if args.port_file:
        _write_port(args.port_file, server.port)
    print(f"{COMMAND}: listening on {address}", flush=True)
    stop.wait()
    server.stop()
    return 0


def bind_address(text: str) -> tuple[str, int]:
    """Host and port from ``host:port`` (an IPv6 host in brackets)."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise argparse.ArgumentTypeError("must be host:port, such as 127.0.0.1:0")
    return host.strip("[]"), int(port)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bind",
        type=bind_address,
        default="127.0.0.1:0",
        metavar="HOST:PORT",
        help="address to listen on; port 0: a free one (default: %(default)s)",
    )
    parser.add_argument("--script", type=Path, metavar="FILE.json", help="how calls are answered")
    parser.add_argument(
        "--port-file", type=Path, metavar="PATH", help="file for the port, written when ready"
    )
    parser.add_argument(
        "--stop-with-stdin",
        action="store_true",
        help="stop when standard input ends, so that it cannot outlive who started it",
    )
    parser.set_defaults(run=run)


def _script(path: Path | None) -> Script:
    """
    :raises SettingsError: the file is not a script.
    :raises OSError: it cannot be read.
    """
    return Script() if path is None else read_script(path.read_bytes())


def _write_port(path: Path, port: int) -> None:
    """Write the port so that no reader sees half of it."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    draft.write_text(f"{port}\n", encoding="ascii")
    draft.replace(path)


def _stop_with_stdin(stop: Event) -> None:
    number = sys.stdin.fileno()
    while True:
        wait_read(number)
        if not os.read(number, 4096):
            stop.set()
            return
