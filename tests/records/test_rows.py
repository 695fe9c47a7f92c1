"""Rows are unique by business key, each under its flight's fence."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from flightsvc.errors import RecordsError
from flightsvc.metrics import Metrics
from flightsvc.records import KINDS, Records, SessionRecords
from tests.records.samples import FILE, row

ME = ("acme", "s-1")


def fence_of(records: Records, key: str = "1") -> int | None:
    found = records.find(*ME, "evaluation", key)
    return found.fence if found is not None else None


def test_a_row_comes_back_as_it_was_written(records: Records) -> None:
    record = row(value={"score": 86.5, "feedback": "好"}, file_digest=FILE)
    assert records.write(record) == "written"

    found = records.find(*ME, "evaluation", "1")
    assert found is not None
    for name in type(record).__dataclass_fields__:
        assert getattr(found, name) == getattr(record, name), name
    assert found.created_ms == found.written_ms > 1_700_000_000_000
    assert records.session(*ME) == SessionRecords(*ME, (found,))


@pytest.mark.parametrize(
    ("stands", "comes", "outcome", "left"),
    [
        (5, 6, "written", 6),
        (5, 5, "written", 5),  # the same answer told twice
        (5, 4, "stale", 5),
        (5, 0, "stale", 5),  # of a worker without Redis
        (0, 5, "written", 5),
        (0, 0, "written", 0),
        (None, 0, "written", 0),
        (None, 4, "written", 4),  # of a replay that found no row
    ],
)
def test_a_row_yields_to_a_newer_owner_only(
    records: Records, metrics: Metrics, stands: int | None, comes: int, outcome: str, left: int
) -> None:
    if stands is not None:
        records.write(row(fence=stands))
    metrics.snapshot()
    assert records.write(row(fence=comes)) == outcome
    assert fence_of(records) == left
    found = records.find(*ME, "evaluation", "1")
    assert found is not None
    assert found.value["fence"] == left
    assert metrics.snapshot()[f"records.writes.evaluation.{outcome}"] >= 1


def test_a_row_is_found_by_its_flight_too(records: Records) -> None:
    records.write(row("1", flight_id="1" * 32))
    records.write(row("2", flight_id="2" * 32))
    found = records.find_flight(*ME, "2" * 32)
    assert found is not None
    assert found.business_key == "2"
    assert records.find_flight("acme", "s-2", "2" * 32) is None
    assert records.find_flight("evil", "s-1", "2" * 32) is None


def test_a_row_that_is_replaced_keeps_its_place(records: Records) -> None:
    for key in ("1", "2"):
        records.write(row(key))
    records.write(row("1", fence=2))
    first, second = records.session(*ME).records
    assert (first.business_key, second.business_key) == ("1", "2")
    assert first.written_ms >= second.written_ms
    assert first.created_ms <= second.created_ms


@pytest.mark.parametrize("name", ["tenant", "session_id", "kind", "business_key"])
def test_what_differs_in_one_part_is_another_row(records: Records, name: str) -> None:
    other: dict[str, Any] = {name: "demeanor" if name == "kind" else "other"}
    records.write(row(fence=9))
    assert records.write(row(fence=1, **other)) == "written"
    assert fence_of(records) == 9


def test_nobody_sees_another_tenants_rows(records: Records) -> None:
    records.write(row())
    assert not records.session("evil", "s-1")
    assert records.find("evil", "s-1", "evaluation", "1") is None
    assert records.forget_session("evil", "s-1").rows == 0
    assert records.forget_flight("evil", row().flight_id).rows == 0
    assert records.session(*ME)


ODD: list[dict[str, Any]] = [
    {"text": "中文 😀 \u202e\x0b"},
    {"nul": "a\0b", "half": "\ud83d", "key\0": 1},
    {"deep": [[[{"a": None}]], True, 1e300, -0.5, 10**18]},
    {"%s": "%(x)s :y ' \" \\ ; --"},
    {"long": "长" * 400_000},
    {},
]


@pytest.mark.parametrize("odd", ODD, ids=[str([*value][:1]) for value in ODD])
def test_any_json_object_can_be_kept(records: Records, odd: dict[str, Any]) -> None:
    records.write(row(value=odd, asked=odd))
    found = records.find(*ME, "evaluation", "1")
    assert found is not None
    assert (found.value, found.asked) == (odd, odd)


def test_every_kind_can_be_kept(records: Records) -> None:
    for kind in KINDS:
        records.write(row(kind=kind, business_key="长" * 100))
    session = records.session(*ME)
    assert [len(session.of(kind)) for kind in KINDS] == [1] * len(KINDS)


@pytest.mark.parametrize(
    "change",
    [
        {"value": {"score": float("nan")}},
        {"value": {"score": {1, 2}}},
        {"value": {"score": b"x"}},
        {"value": [1]},
        {"asked": "text"},
        {"kind": "poem"},
        {"fence": -1},
        {"fence": 2**63},
        {"fence": True},
        {"business_key": ""},
        {"business_key": "a\0"},
        {"session_id": "\ud83d"},
        {"tenant": "x" * 301},
        {"flight_id": None},
    ],
    ids=repr,
)
def test_what_no_database_takes_is_rejected(
    records: Records, metrics: Metrics, change: dict[str, Any]
) -> None:
    with pytest.raises(RecordsError) as refused:
        records.write(row(**change))
    assert refused.value.kind == "rejected"
    assert metrics.snapshot()["records.errors.rejected"] == 1
    assert not records.session(*ME)


def test_names_are_never_statements(records: Records) -> None:
    nasty = "x'; DROP TABLE flightsvc_records; --"
    records.write(row(nasty, session_id=nasty, tenant=nasty))
    (found,) = records.session(nasty, nasty).records
    assert found.business_key == nasty


@pytest.mark.parametrize("seed", range(5))
def test_in_any_order_the_highest_fence_stands(records: Records, seed: int) -> None:
    dice = random.Random(seed)
    stands: dict[str, int] = {}
    for _ in range(40):
        key, fence = dice.choice("abc"), dice.randrange(6)
        expected = "written" if fence >= stands.get(key, 0) else "stale"
        assert records.write(row(key, fence)) == expected
        stands[key] = max(fence, stands.get(key, 0))
        assert fence_of(records, key) == stands[key]


def test_no_connection_is_in_use_between_calls(records: Records) -> None:
    records.write(row())
    records.session(*ME)
    with pytest.raises(RecordsError):
        records.write(replace(row(), value={"x": object()}))
    assert records._database.connections_in_use == 0
