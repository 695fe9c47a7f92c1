"""What the records keep and give back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Kind = Literal["question_set", "evaluation", "follow_up", "demeanor"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: ``stale``: a newer owner's row stands; ``forgotten``: the session was deleted since it was asked
Written = Literal["written", "stale", "forgotten"]

#: longest text in a column that rows are found by, in bytes of UTF-8; three of them are a key of
#: PostgreSQL's index, which takes 2,700
MAX_KEY = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One answer, to be kept.

    :param business_key: which answer of the session: what makes two calls the same question.
    :param fence: of the flight that it came from; 0: of a worker without Redis.
    :param flight_id: that flight, 32 hex digits.
    :param value: the answer, as the caller gets it; JSON.
    :param asked: what was asked, as far as it may be kept; JSON.
    :param file_digest: of the file that it is about, SHA-256, hex.
    :param asked_ms: when it was asked, by this machine's clock, Unix time in ms; 0: nobody knows.
        Only where there is no fence.
    """

    tenant: str
    session_id: str
    kind: Kind
    business_key: str
    fence: int
    flight_id: str
    value: Mapping[str, Any] = field(repr=False)
    asked: Mapping[str, Any] = field(default_factory=dict, repr=False)
    file_digest: str | None = None
    asked_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord(Record):
    """A row.

    :param created_ms: when its first answer was kept, Unix time in ms.
    :param written_ms: when this one was.
    """

    created_ms: int
    written_ms: int


@dataclass(frozen=True, slots=True)
class SessionRecords:
    """Everything that is kept of a session, the oldest first."""

    tenant: str
    session_id: str
    records: tuple[StoredRecord, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.records)

    def of(self, kind: Kind) -> tuple[StoredRecord, ...]:
        """The rows of one kind."""
        return tuple(record for record in self.records if record.kind == kind)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was deleted, and what is to be deleted elsewhere with it.

    :param rows: how many rows went.
    :param flight_ids: the flights that they came from; their stored answers are still in Redis.
    :param file_digests: files that no row is about any more. A question that is being asked has no
        row yet: whoever deletes files leaves those alone that came just now.
    """

    rows: int = 0
    flight_ids: tuple[str, ...] = ()
    file_digests: tuple[str, ...] = ()


def fault(record: Record) -> str:
    """Why no database takes a record; empty if it is fine."""
    for name in ("tenant", "session_id", "business_key", "flight_id", "file_digest"):
        text: object = getattr(record, name)
        if name in ("tenant", "file_digest") and not text:  # may be none
            continue
        if not isinstance(text, str) or not _is_storable(text):
            return f"its {name} is not 1 to {MAX_KEY} bytes of text"
    if record.kind not in KINDS:
        return "its kind is none"
    if isinstance(record.fence, bool) or not 0 <= record.fence < 2**63:
        return "its fence is none"
    texts: tuple[object, ...] = record.value, record.asked
    if not all(isinstance(text, Mapping) for text in texts):
        return "what was asked or answered is no JSON object"
    return ""


def _is_storable(text: str) -> bool:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return 0 < len(encoded) <= MAX_KEY and b"\0" not in encoded
