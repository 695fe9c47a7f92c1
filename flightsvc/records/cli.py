"""``flightsvc db …``: the tables of the records, for operators."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from flightsvc.errors import RecordsError
from flightsvc.records.database import Database
from flightsvc.records.faults import NoAccess
from flightsvc.records.migrations import REVISIONS
from flightsvc.records.service import open_database
from flightsvc.records.upgrade import Version, current, settings_error, upgrade
from flightsvc.settings import load_settings

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

#: longest wait for the database, in s: nobody else waits behind this command
PATIENCE_S = 10.0


def add_parser(subparsers: Subparsers) -> None:
    """Add the sub-command; its parsed arguments carry ``run``, which takes them."""
    parser = subparsers.add_parser(
        "db",
        help="upgrade the tables that answers are kept in",
        description="Upgrade the tables that answers are kept in. Settings as for the service: "
        "FLIGHTSVC_DATABASE_URL, FLIGHTSVC_DATA_DIR. Workers upgrade at their start; this is for "
        "databases whose user may not.",
    )
    commands = parser.add_subparsers(metavar="action", required=True)
    for name, act, says in (
        ("upgrade", _upgrade, "bring the tables up to date"),
        ("current", _current, "say how far they are"),
    ):
        command = commands.add_parser(name, help=says, description=says)
        command.set_defaults(run=run, act=act)


def run(args: argparse.Namespace) -> int:
    """Do one action.

    :returns: 0, or 1 if the database cannot be asked.
    :raises SettingsError: it cannot be used as the settings are.
    """
    database = open_database(load_settings())
    database.timeout_s = max(database.timeout_s, PATIENCE_S)
    try:
        print(args.act(database))
    except NoAccess as fault:
        raise settings_error(database, fault) from None
    except RecordsError as error:
        print(f"flightsvc db: {error.inside}", file=sys.stderr)
        return 1
    finally:
        database.close()
    return 0


def _upgrade(database: Database) -> str:
    before, after = upgrade(database)
    if before == after:
        return f"The {database.url} is up to date: {_said(after)}."
    return f"The {database.url} is upgraded from {_said(before)} to {_said(after)}."


def _current(database: Database) -> str:
    found = current(database)
    newest = "" if found.is_current else f"; `flightsvc db upgrade` brings it to {REVISIONS[-1]}"
    return f"The {database.url} is at {_said(found)}{newest}."


def _said(version: Version) -> str:
    if not version.is_known:
        return f"{version.found}, which is newer than this flightsvc"
    return version.found or "nothing"
