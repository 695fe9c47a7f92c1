"""The tables, and the statements on them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
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
    delete,
    select,
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

_KEY = ("tenant", "session_id", "kind", "business_key")
_UPDATED = ("fence", "flight_id", "value", "asked", "file_digest", "written_ms")
_c = RECORDS.c


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
