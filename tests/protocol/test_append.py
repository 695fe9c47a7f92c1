"""Chunks: each once, in order, without a gap."""

from __future__ import annotations

import pytest

from flightsvc.flight import verbs
from tests.protocol.desk import Desk


def _chunks(desk: Desk) -> list[tuple[int, str]]:
    events = [event for _, event in desk.events() if event["kind"] == "chunk"]
    assert {event["fence"] for event in events} <= {desk.meta()["fence"]}
    return [(int(event["seq"]), event["data"]) for event in events]


def test_chunks_get_numbers_in_order(desk: Desk) -> None:
    fence = desk.own("a")

    assert desk.run(verbs.APPEND, "a", "b", fence=fence, first=0) == ["OK", 2, 0]
    assert desk.run(verbs.APPEND, "c", fence=fence, first=2) == ["OK", 3, 0]

    assert _chunks(desk) == [(0, "a"), (1, "b"), (2, "c")]


@pytest.mark.parametrize("first", [3, 4, 100])
def test_a_gap_is_refused_and_the_expected_number_named(desk: Desk, first: int) -> None:
    fence = desk.own("a")
    desk.run(verbs.APPEND, "a", "b", fence=fence)
    before = desk.content()

    assert desk.run(verbs.APPEND, "x", fence=fence, first=first) == ["GAP", 2, 0]
    assert desk.content() == before


@pytest.mark.parametrize(("first", "chunks"), [(0, "ab"), (1, "b"), (0, "a")])
def test_what_is_there_already_is_not_added_again(desk: Desk, first: int, chunks: str) -> None:
    fence = desk.own("a")
    desk.run(verbs.APPEND, "a", "b", fence=fence)
    before = desk.content()

    assert desk.run(verbs.APPEND, *chunks, fence=fence, first=first) == ["OK", 2, 0]
    assert desk.content() == before


def test_of_an_overlap_only_the_rest_is_added(desk: Desk) -> None:
    # given an append whose reply was lost, and a next one that sends its chunks again
    fence = desk.own("a")
    desk.run(verbs.APPEND, "a", "b", fence=fence)

    assert desk.run(verbs.APPEND, "b", "c", "d", fence=fence, first=1) == ["OK", 4, 0]

    assert _chunks(desk) == [(0, "a"), (1, "b"), (2, "c"), (3, "d")]


def test_no_chunk_at_all_says_what_is_expected(desk: Desk) -> None:
    fence = desk.own("a")
    desk.run(verbs.APPEND, "a", fence=fence)

    assert desk.run(verbs.APPEND, fence=fence, first=0) == ["OK", 1, 0]
    assert desk.run(verbs.APPEND, fence=fence, first=1) == ["OK", 1, 0]
    assert desk.run(verbs.APPEND, fence=fence, first=2) == ["GAP", 1, 0]


def test_chunks_are_bytes_of_any_kind(desk: Desk) -> None:
    fence = desk.own("a")
    pieces = [b"\xe5\xb1", b"\x00\r\n", b"", "履".encode()]

    desk.run(verbs.APPEND, *pieces, fence=fence)

    stored = [event[b"data"] for _, event in desk.client.xrange(desk.keys["events"])[1:]]
    assert stored == pieces


def test_many_chunks_fit_into_one_append(desk: Desk) -> None:
    fence = desk.own("a")

    assert desk.run(verbs.APPEND, *(["x"] * 5_000), fence=fence) == ["OK", 5_000, 0]


def test_it_says_how_many_workers_follow(desk: Desk) -> None:
    fence = desk.own("a")
    for number, worker in enumerate(("w2", "w3", "w3")):
        assert desk.run(verbs.APPEND, "x", fence=fence, first=number)[2] == min(number, 2)
        desk.ask("b", worker=worker)
    desk.run(verbs.LEAVE, worker="w2")
    assert desk.run(verbs.APPEND, fence=fence, first=9) == ["GAP", 3, 1]


def test_a_new_ownership_counts_from_zero(desk: Desk) -> None:
    # given a first owner that told two chunks and was lost
    first = desk.own("a")
    desk.run(verbs.APPEND, "A", "A", fence=first)
    desk.silence()
    second = desk.own("b")

    # then the second begins at 0, and the first is refused
    assert desk.run(verbs.APPEND, "B", token="b", fence=second, first=0) == ["OK", 1, 0]
    assert desk.run(verbs.APPEND, "A", fence=first, first=2) == ["STALE", 0, 0]


def test_an_append_renews_the_leases(desk: Desk) -> None:
    fence = desk.own("a")
    for key in ("meta", "events"):
        desk.client.pexpire(desk.keys[key], 1_000)

    desk.run(verbs.APPEND, "a", fence=fence)

    assert min(desk.ttl("meta"), desk.ttl("events")) > 1_000
