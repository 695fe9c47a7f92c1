"""What a database's errors mean: out of reach, busy, a refusal, or a wrong setting.

Their own words are not shown: they can hold an answer, or a name that stands beside a password.
"""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import SQLAlchemyError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from flightsvc.errors import RecordsError
from flightsvc.settings.database_url import DatabaseUrl

#: a user may come back by then, in s
RETRY_AFTER_S = 5.0

#: what PostgreSQL says in English to who is not let in; in another language it counts as out of
#: reach, which repairs itself
_NO_ACCESS = (
    ("password authentication failed", "refuses the user or the password"),
    ("no password supplied", "wants a password"),
    ("no pg_hba.conf entry", "does not let this user in from this machine (pg_hba.conf)"),
    ("authentication failed", "does not let this user in"),
    ("is not permitted to log in", "does not let this user in"),
    ('database "', "has no such database"),
    ('role "', "has no such user"),
    ("invalid connection option", "is not what an option of the URL is for"),
    ("invalid integer value", "is not what an option of the URL is for"),
    ("invalid sslmode value", "is not what an option of the URL is for"),
    ("certificate verify failed", "has a certificate that cannot be trusted"),
    ("does not support SSL", "does not speak TLS"),
    ("permission denied for database", "does not let this user into the database"),
)
#: by SQLSTATE; the first two characters are its class
_PG_UNREACHABLE = ("08", "57P01", "57P02", "57P03", "53300")
_PG_BUSY = ("55P03", "57014", "40001", "40P01")
_PG_NO_ACCESS = ("28", "3D", "42501", "3F000")

_LITE_NO_ACCESS = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_NOTADB")
_LITE_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")


class NoAccess(RecordsError):
    """The settings cannot be right: the database is there, but lets nobody in.

    :param reason: the end of a sentence about the database.
    """

    def __init__(self, database: DatabaseUrl, reason: str) -> None:
        super().__init__(f"The {database} {reason}.", kind="refused")
        self.reason = reason


def explained(error: Exception, database: DatabaseUrl) -> RecordsError:
    """The one kind of error that the records raise."""
    cause = error.orig if isinstance(error, StatementError) and error.orig is not None else error
    if isinstance(error, PoolTimeout):
        return busy(database)
    if isinstance(cause, ValueError):  # see tables.to_json
        return RecordsError("What was asked or answered is no JSON.", kind="rejected")
    if database.kind == "sqlite":
        return _sqlite(cause, database)
    return _postgresql(cause, database)


def unreachable(database: DatabaseUrl, why: str = "") -> RecordsError:
    """It does not answer."""
    said = f"The {database} is out of reach{f' ({why})' if why else ''}."
    return RecordsError(said, kind="unreachable", retry_after_s=RETRY_AFTER_S)


def busy(database: DatabaseUrl) -> RecordsError:
    """It answers, but others are before us."""
    said = f"The {database} is busy."
    return RecordsError(said, kind="busy", retry_after_s=RETRY_AFTER_S)


def silent(database: DatabaseUrl, waited_s: float) -> RecordsError:
    """It did not answer in time. A SQLite file cannot go away, so others were before us."""
    if database.kind == "sqlite":
        return busy(database)
    return unreachable(database, f"no answer within {waited_s:g} s")


def _sqlite(cause: BaseException, database: DatabaseUrl) -> RecordsError:
    name = getattr(cause, "sqlite_errorname", "") or ""
    if name.startswith(_LITE_BUSY):
        return busy(database)
    if name.startswith(_LITE_NO_ACCESS) or isinstance(cause, PermissionError):
        what = "is no database" if name == "SQLITE_NOTADB" else "cannot be opened and written"
        return NoAccess(database, what)
    if isinstance(cause, OSError):
        return NoAccess(database, f"cannot be made ({type(cause).__name__})")
    named = f" ({name})" if name else ""
    return RecordsError(f"The {database} refuses{named}.", retry_after_s=RETRY_AFTER_S)


def _postgresql(cause: BaseException, database: DatabaseUrl) -> RecordsError:
    state = getattr(cause, "sqlstate", None) or ""
    if state.startswith(_PG_UNREACHABLE):
        return unreachable(database, state)
    if state.startswith(_PG_BUSY):
        return busy(database)
    if state.startswith(_PG_NO_ACCESS):
        return NoAccess(database, f"does not allow this to its user ({state})")
    if not state:  # before the connection stands there is none, only words
        said = str(cause)
        for words, meaning in _NO_ACCESS:
            if words in said:
                return NoAccess(database, meaning)
        return unreachable(database, _short(said))
    return RecordsError(f"The {database} refuses ({state}).", retry_after_s=RETRY_AFTER_S)


def _short(said: str) -> str:
    """Why there is no connection, if it is one of the usual reasons."""
    reasons = ("Connection refused", "No such file", "resolve host", "timeout", "starting up")
    return next((reason for reason in reasons if reason in said), "")


#: what a use of the database can fail with, beside what is wrong in our own program
FAILURES = (SQLAlchemyError, sqlite3.Error, OSError, ValueError)
