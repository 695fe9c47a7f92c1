"""Rows, and programs that use records in processes of their own."""

from __future__ import annotations

from typing import Any

from flightsvc.records import Record, StoredRecord

FLIGHT, FILE = "ab" * 16, "cd" * 32

#: begins a program: `opened(url)` gives records, `row(key, fence)` a row to write
PROGRAM = """
from gevent import monkey
monkey.patch_all()
import json, os, sys
from flightsvc.metrics import Metrics
from flightsvc.records import open_records
from flightsvc.settings import Settings
from tests.records.samples import row

def opened(url, **settings):
    return open_records(Settings(database_url=url, **settings), Metrics.off())

def say(text):
    print(text, flush=True)
"""


def row(key: str = "1", fence: int = 1, **changes: Any) -> Record:
    """An evaluation of session s-1 of tenant acme."""
    given: dict[str, Any] = {
        "tenant": "acme",
        "session_id": "s-1",
        "kind": "evaluation",
        "business_key": key,
        "fence": fence,
        "flight_id": FLIGHT,
        "value": {"score": 7, "fence": fence},
        "asked": {"question_number": 1},
    }
    return Record(**{**given, **changes})


def stored(number: int, **changes: Any) -> StoredRecord:
    """A row as it is read back; later ones have higher numbers."""
    record = row(str(number), **changes)
    written_ms = 1_796_000_000_000 + number * 60_000
    names = Record.__dataclass_fields__
    given = {name: getattr(record, name) for name in names}
    return StoredRecord(**given, created_ms=written_ms, written_ms=written_ms)
