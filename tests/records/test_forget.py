"""Forgetting by session, by flight and by age."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from flightsvc.errors import RecordsError
from flightsvc.metrics import Metrics
from flightsvc.records import Forgotten, Records, Retention
from tests.processes import wait_until
from tests.records.conftest import Open
from tests.records.samples import row

F1, F2 = "1" * 32, "2" * 32
A, B, C = "a" * 64, "b" * 64, "c" * 64


@pytest.fixture
def full(records: Records) -> Records:
    records.write(row("1", flight_id=F1))
    records.write(row("2", flight_id=F2, kind="demeanor", file_digest=A))
    records.write(row("3", flight_id=F2, kind="question_set", file_digest=B))
    records.write(row("4", flight_id=F2, session_id="s-2", file_digest=B))
    records.write(row("5", flight_id=F1, tenant="other", file_digest=C))
    return records


def test_a_session_is_forgotten_with_what_only_it_used(full: Records) -> None:
    gone = full.forget_session("acme", "s-1")
    assert (gone.rows, set(gone.flight_ids), gone.file_digests) == (3, {F1, F2}, (A,))
    assert not full.session("acme", "s-1")
    assert full.session("acme", "s-2")
    assert full.session("other", "s-1")
    assert full.forget_session("acme", "s-1") == Forgotten()
    assert full.forget_session("acme", "s-2").file_digests == (B,)


def test_a_file_that_another_tenant_uses_stays(full: Records) -> None:
    full.write(row("6", tenant="other", file_digest=A))
    assert full.forget_session("acme", "s-1").file_digests == ()


def test_a_flight_is_forgotten_for_its_tenant(full: Records) -> None:
    gone = full.forget_flight("acme", F2)
    assert (gone.rows, gone.flight_ids, gone.file_digests) == (3, (F2,), (A, B))
    assert [record.flight_id for record in full.session("acme", "s-1").records] == [F1]


def test_what_is_old_is_forgotten_the_oldest_first(full: Records) -> None:
    assert full.forget_older(60) == Forgotten()
    time.sleep(0.01)
    assert full.forget_older(0, most=2).rows == 2
    assert [r.business_key for r in full.session("acme", "s-1").records] == ["3"]
    gone = full.forget_older(0)
    assert (gone.rows, gone.file_digests) == (3, (B, C))


def test_a_row_may_be_written_again_after_it_was_forgotten(records: Records) -> None:
    records.write(row(fence=9))
    records.forget_session("acme", "s-1")
    assert records.write(row(fence=3)) == "written"


def test_what_is_forgotten_is_not_left_in_the_file(opened: Open, tmp_path: Path) -> None:
    """Not in a free page, and not in SQLite's log."""
    records = opened(data_dir=str(tmp_path))
    records.write(row(value={"text": "a secret of the candidate" * 100}))
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    records.forget_session("acme", "s-1")
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"a secret" in written
    assert b"a secret" not in left


def test_nobody_else_reads_the_file(opened: Open, tmp_path: Path) -> None:
    opened(data_dir=str(tmp_path / "new")).write(row())
    (file,) = (tmp_path / "new").iterdir()
    assert file.name == "records.sqlite3"
    assert file.stat().st_mode & 0o077 == 0
    mode = sqlite3.connect(file).execute("PRAGMA journal_mode").fetchone()
    assert mode == ("wal",)


class Files:
    """Stands where the file store is told which files to delete."""

    def __init__(self) -> None:
        self.gone: list[str] = []

    def __call__(self, digests: Collection[str]) -> None:
        self.gone += digests


def aged(records: Records, days: float) -> None:
    """Make all rows older than they are."""
    ms = int(days * 86_400_000)
    records._database.write(
        lambda c: c.exec_driver_sql(
            f"UPDATE flightsvc_records SET written_ms = written_ms - {ms}"
        )
    )


def test_retention_forgets_by_age(full: Records) -> None:
    files = Files()
    aged(full, days=2.9)
    assert Retention(full, 3, files).sweep() == 0
    aged(full, days=0.2)
    full.write(row("new", session_id="s-2", file_digest=B))
    assert Retention(full, 3, files).sweep() == 5
    assert sorted(files.gone) == [A, C]
    assert [r.business_key for r in full.session("acme", "s-2").records] == ["new"]


def test_without_retention_nothing_is_too_old(full: Records) -> None:
    aged(full, days=10_000)
    keeps = Retention(full, 0, Files())
    keeps.start()
    assert keeps.sweep() == 0
    keeps.close()


def test_more_than_one_batch_is_forgotten(records: Records) -> None:
    for number in range(12):
        records.write(row(str(number)))
    aged(records, days=2)
    assert Retention(records, 1, Files(), batch=5).sweep() == 12


def test_retention_looks_in_the_background(full: Records) -> None:
    aged(full, days=2)
    background = Retention(full, 1, Files(), every_s=0.01)
    background.start()
    wait_until(lambda: not full.session("acme", "s-1"))
    background.close()


def test_retention_outlives_a_database_that_is_gone(opened: Open, metrics: Metrics) -> None:
    records = opened("postgresql://u:p@127.0.0.1:1/d")
    with pytest.raises(RecordsError):
        Retention(records, 1, Files()).sweep()
    background = Retention(records, 1, Files(), every_s=0.01)
    background.start()
    wait_until(lambda: metrics.snapshot()["records.errors.unreachable"] >= 4)
    background.close()


def test_what_was_asked_before_the_deletion_is_not_kept(records: Records) -> None:
    """By its fence; where there is none, by the clock; where nobody knows, not at all."""
    records.forget_session("acme", "s-1", below_fence=100)
    now_ms = int(time.time() * 1_000) + 1_000
    for fence, asked_ms, outcome in (
        (99, 0, "forgotten"),
        (100, 0, "forgotten"),
        (0, 0, "forgotten"),
        (0, now_ms - 60_000, "forgotten"),
        (0, now_ms, "written"),
        (101, 0, "written"),
    ):
        record = replace(row("1", fence), asked_ms=asked_ms)
        assert records.write(record) == outcome, (fence, asked_ms)


def test_a_mark_never_goes_back_and_ends_with_its_age(records: Records) -> None:
    records.forget_session("acme", "s-1", below_fence=100)
    records.forget_session("acme", "s-1", below_fence=7)
    assert records.write(row("1", 100)) == "forgotten"
    assert records.deleted_ago_s("acme", "s-1") < 60
    assert records.deleted_ago_s("acme", "s-2") == math.inf
    records.forget_marks(60)
    assert records.write(row("1", 100)) == "forgotten"
    records.forget_marks(-1)
    assert records.write(row("1", 100)) == "written"
    assert records.deleted_ago_s("acme", "s-1") == math.inf
