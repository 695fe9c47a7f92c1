"""``flightsvc …``: one sub-command a module.

A module in :data:`COMMANDS` offers ``add_parser(subparsers)``, which adds its parser and sets
``run`` on it: a function that takes the parsed arguments and returns the exit code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from flightsvc._version import __version__
from flightsvc.errors import SettingsError

#: a further sub-command is one line here
COMMANDS = (
    "flightsvc.checklist.cli",
    "flightsvc.demo.cli",
    "flightsvc.model_server.cli",
    "flightsvc.modules_cli",
    "flightsvc.records.cli",
)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line with all sub-commands."""
    parser = argparse.ArgumentParser(
        prog="flightsvc",
        description="One model call per question, however many ask.",
        epilog="The service itself: gunicorn -c python:flightsvc.gunicorn_conf",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    subparsers = parser.add_subparsers(metavar="command", required=True)
    for name in COMMANDS:
        import_module(name).add_parser(subparsers)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one sub-command.

    :param arguments: None: those of the process.
    :returns: the exit code; wrong settings are one line on stderr and 1, Ctrl-C is 130.
    """
    try:
        given = make_parser().parse_args(arguments)
        return int(given.run(given) or 0)
    except SettingsError as problem:
        print(f"flightsvc: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
