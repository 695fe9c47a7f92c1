"""RECORDS: answers as rows in SQLite or PostgreSQL, and the report of a session.

Knows settings, errors and metrics; nothing of flights, models or HTTP. The only room that imports
SQLAlchemy.
"""

from flightsvc.records.report import CONTENT_SECURITY_POLICY, as_json, render_report
from flightsvc.records.retention import Retention
from flightsvc.records.rows import (
    KINDS,
    Forgotten,
    Kind,
    Record,
    SessionRecords,
    StoredRecord,
    Written,
)
from flightsvc.records.service import Records, open_database, open_records

__all__ = [
    "CONTENT_SECURITY_POLICY",
    "KINDS",
    "Forgotten",
    "Kind",
    "Record",
    "Records",
    "Retention",
    "SessionRecords",
    "StoredRecord",
    "Written",
    "as_json",
    "open_database",
    "open_records",
    "render_report",
]
