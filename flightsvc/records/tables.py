"""The tables, and the statements on them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    Delete,
    Index,
    Integer,
    MetaData,
    RowMapping,
    Select,
    String,
    Table,
    Text,
    UniqueConstraint,
    case,
    delete,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite

from flightsvc.records.rows import MAX_KEY, Record, StoredRecord

#: they may stand in the database of another program
PREFIX = "flightsvc_"
VERSION_TABLE = PREFIX + "version"

METADATA = MetaData()
RECORDS = Table(
    PREFIX + "records",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("tenant", String(MAX_KEY), nullable=False),
    Column("session_id", String(MAX_KEY), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("business_key", String(MAX_KEY), nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("flight_id", String(MAX_KEY), nullable=False),
    Column("value", JSON, nullable=False),
    Column("asked", JSON, nullable=False),
    Column("file_digest", Text),
    Column("created_ms", BigInteger, nullable=False),
    Column("written_ms", BigInteger, nullable=False),
    UniqueConstraint(
        "tenant", "session_id", "kind", "business_key", name=PREFIX + "records_business_key"
    ),
    Index(PREFIX + "records_flight", "flight_id"),
    Index(PREFIX + "records_written", "written_ms"),
    Index(PREFIX + "records_file", "file_digest"),
)

FORGOTTEN = Table(
    PREFIX + "forgotten",
    METADATA,
    Column("tenant", String(MAX_KEY), primary_key=True),
    Column("session_id", String(MAX_KEY), primary_key=True),
    # fences up to this one were granted before the session was deleted
    Column("below_fence", BigInteger, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Index(PREFIX + "forgotten_at", "at_ms"),
)

_KEY = ("tenant", "session_id", "kind", "business_key")
_UPDATED = ("fence", "flight_id", "value", "asked", "file_digest", "written_ms")
_c = RECORDS.c
_f = FORGOTTEN.c


def write(connection: Connection, record: Record, now_ms: int) -> bool:
    """Write a row, unless one with a higher fence stands; one statement.

    The same fence may write again: the same answer told twice is the same row. Where there is no
    Redis all fences are 0, and the last answer stands.

    :returns: whether it was written.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = insert(RECORDS).values(
        tenant=record.tenant,
        session_id=record.session_id,
        kind=record.kind,
        business_key=record.business_key,
        fence=record.fence,
        flight_id=record.flight_id,
        value=record.value,
        asked=record.asked,
        file_digest=record.file_digest or None,
        created_ms=now_ms,
        written_ms=now_ms,
    )
    statement = row.on_conflict_do_update(
        index_elements=_KEY,
        set_={name: row.excluded[name] for name in _UPDATED},
        where=_c.fence <= row.excluded.fence,
    ).returning(_c.id)
    return connection.execute(statement).first() is not None


def is_forgotten(connection: Connection, record: Record) -> bool:
    """Whether the session was deleted after the answer was asked for; it stays so till the end of
    the transaction."""
    _lock_session(connection, record.tenant, record.session_id, shared=True)
    mark = connection.execute(
        select(_f.below_fence, _f.at_ms).where(
            _f.tenant == record.tenant, _f.session_id == record.session_id
        )
    ).first()
    if mark is None:
        return False
    if record.fence:
        return bool(record.fence <= mark.below_fence)
    return bool(record.asked_ms <= mark.at_ms)


def mark_forgotten(
    connection: Connection, tenant: str, session_id: str, below_fence: int, now_ms: int
) -> None:
    """Say that a session is deleted, before its rows are."""
    _lock_session(connection, tenant, session_id, shared=False)
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = insert(FORGOTTEN).values(
        tenant=tenant, session_id=session_id, below_fence=below_fence, at_ms=now_ms
    )
    new = row.excluded
    highest = case((new.below_fence > _f.below_fence, new.below_fence), else_=_f.below_fence)
    latest = case((new.at_ms > _f.at_ms, new.at_ms), else_=_f.at_ms)
    connection.execute(
        row.on_conflict_do_update(
            index_elements=("tenant", "session_id"),
            set_={"below_fence": highest, "at_ms": latest},
        )
    )


def deleted_at(tenant: str, session_id: str) -> Select[Any]:
    """When a session was deleted last, Unix time in ms."""
    return select(_f.at_ms).where(_f.tenant == tenant, _f.session_id == session_id)


def forget_marks_before(at_ms: int) -> Delete:
    """Delete marks of sessions that were deleted so long ago that nothing of them can come."""
    return delete(FORGOTTEN).where(_f.at_ms < at_ms)


def _lock_session(
    connection: Connection, tenant: str, session_id: str, *, shared: bool
) -> None:
    """No row of a session is written while it is deleted; SQLite has one writer anyway."""
    if connection.dialect.name != "postgresql":
        return
    name = sha256(f"{tenant}\0{session_id}".encode()).digest()
    key = int.from_bytes(name[:8], "big", signed=True)
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    connection.execute(text(f"SELECT {function}(:key)").bindparams(key=key))


def find(tenant: str, session_id: str, kind: str, business_key: str) -> Select[Any]:
    """The row of a business key."""
    return select(RECORDS).where(
        _c.tenant == tenant,
        _c.session_id == session_id,
        _c.kind == kind,
        _c.business_key == business_key,
    )


def find_flight(tenant: str, session_id: str, flight_id: str) -> Select[Any]:
    """The row that came from a flight."""
    return select(RECORDS).where(
        _c.tenant == tenant, _c.session_id == session_id, _c.flight_id == flight_id
    )


def of_session(tenant: str, session_id: str) -> Select[Any]:
    """All rows of a session, the oldest first."""
    mine = select(RECORDS).where(_c.tenant == tenant, _c.session_id == session_id)
    return mine.order_by(_c.created_ms, _c.id)


def forget_session(tenant: str, session_id: str) -> Delete:
    """Delete the rows of a session."""
    return delete(RECORDS).where(_c.tenant == tenant, _c.session_id == session_id)


def forget_flight(tenant: str, flight_id: str) -> Delete:
    """Delete what came from a flight."""
    return delete(RECORDS).where(_c.tenant == tenant, _c.flight_id == flight_id)


def forget_written_before(written_ms: int, most: int) -> Delete:
    """Delete rows that are older, so many at most, the oldest first."""
    old = select(_c.id).where(_c.written_ms < written_ms).order_by(_c.written_ms).limit(most)
    return delete(RECORDS).where(_c.id.in_(old), _c.written_ms < written_ms)


def used(digests: Iterable[str]) -> Select[tuple[str]]:
    """Those of some files that a row is about."""
    return select(_c.file_digest).where(_c.file_digest.in_(sorted(digests))).distinct()


def stored(row: RowMapping) -> StoredRecord:
    """A row as the records give it back."""
    return StoredRecord(**{name: row[name] for name in row if name != "id"})


def to_json(value: Mapping[str, Any]) -> str:
    """A value as it stands in its column.

    :raises ValueError: it holds NaN or an infinity, or something that is not JSON.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair: only an escape can say it
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not JSON: {type(error).__name__}") from None
    return text
