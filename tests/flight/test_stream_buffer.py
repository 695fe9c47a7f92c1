"""The buffer that all callers of a flight in a worker read."""

from __future__ import annotations

import time

import gevent
import pytest

from flightsvc.flight.buffer import ChunkBuffer, ChunkWriter, Cursor
from flightsvc.flight.clock import DeadlineClock
from tests.flight.streaming import text


def write(writer: ChunkWriter, chunks: list[bytes]) -> None:
    for chunk in chunks:
        assert writer.put(writer.count, chunk)


def read(cursor: Cursor) -> list[bytes]:
    """All that is there now; nothing may be void."""
    assert not cursor.voided()
    return list(iter(cursor.take, None))


def test_each_cursor_reads_everything_at_its_own_pace() -> None:
    buffer = ChunkBuffer()
    fast, slow = Cursor(buffer), Cursor(buffer)
    writer = buffer.begin(1)
    write(writer, text(3))
    assert read(fast) == text(3)
    write(writer, [b"more"])
    assert read(fast) == [b"more"]
    assert read(slow) == read(Cursor(buffer)) == [*text(3), b"more"]


def test_what_is_written_again_is_not_read_again() -> None:
    buffer = ChunkBuffer()
    cursor, writer = Cursor(buffer), buffer.begin(1)
    write(writer, text(3))
    for number, chunk in enumerate(text(4)):
        assert writer.put(number, chunk)
    assert read(cursor) == text(4)


def test_a_gap_is_refused_and_writes_nothing() -> None:
    buffer = ChunkBuffer()
    writer = buffer.begin(1)
    write(writer, text(1))
    assert not writer.put(2, b"x")
    assert read(Cursor(buffer)) == text(1)


def test_a_writer_that_says_the_same_is_not_noticed() -> None:
    buffer = ChunkBuffer()
    cursor = Cursor(buffer)
    write(buffer.begin(1), text(3))
    assert read(cursor) == text(3)
    second = buffer.begin(2)
    write(second, text(5))
    assert read(cursor) == text(5)[3:]
    second.close(2)
    buffer.settle(2)
    assert not cursor.voided()


def test_who_was_past_the_place_begins_again() -> None:
    buffer = ChunkBuffer()
    before, at, past = Cursor(buffer), Cursor(buffer), Cursor(buffer)
    write(buffer.begin(1), [b"same", b"old", b"old"])
    assert at.take() == b"same"
    assert [past.take(), past.take()] == [b"same", b"old"]
    write(buffer.begin(2), [b"same", b"new"])
    assert read(before) == [b"same", b"new"]
    assert read(at) == [b"new"]
    assert past.voided()
    assert read(past) == [b"same", b"new"]


def test_the_shortest_part_that_stood_all_the_time_counts() -> None:
    # given a cursor that sleeps through several texts
    buffer = ChunkBuffer()
    first, second = Cursor(buffer), Cursor(buffer)
    write(buffer.begin(1), [b"a", b"b", b"c"])
    assert [second.take(), second.take()] == [b"a", b"b"]
    write(buffer.begin(2), [b"a", b"x"])
    write(buffer.begin(3), [b"a", b"b", b"c"])
    # then what it has read may stand there again, and is void nevertheless
    assert second.voided()
    assert read(second) == read(first) == [b"a", b"b", b"c"]


def test_a_writer_that_was_followed_by_another_writes_nothing() -> None:
    buffer = ChunkBuffer()
    old, new = buffer.begin(1), buffer.begin(2)
    write(new, [b"new"])
    assert old.put(0, b"old")
    old.close(1)
    assert read(Cursor(buffer)) == [b"new"]
    assert buffer.whole is None


@pytest.mark.parametrize(
    ("closed", "answer", "voided"), [(2, 2, False), (None, 2, True), (2, 3, True), (2, None, True)]
)
def test_an_answer_voids_chunks_that_are_not_all_of_it(
    closed: int | None, answer: int | None, voided: bool
) -> None:
    buffer = ChunkBuffer()
    cursor, writer = Cursor(buffer), buffer.begin(2)
    write(writer, text(2))
    assert read(cursor) == text(2)
    if closed is not None:
        writer.close(closed)
    buffer.settle(answer)
    assert cursor.voided() is voided
    assert read(Cursor(buffer)) == ([] if voided else text(2))


def test_a_text_that_ends_sooner_voids_what_the_one_before_it_had_more() -> None:
    buffer = ChunkBuffer()
    short, long = Cursor(buffer), Cursor(buffer)
    write(buffer.begin(1), text(3))
    assert short.take() == text(1)[0]
    assert read(long) == text(3)
    second = buffer.begin(2)
    write(second, text(2))
    second.close(2)
    assert read(short) == text(2)[1:]
    assert long.voided()


def test_a_writer_can_be_read_whatever_became_of_its_buffer() -> None:
    buffer = ChunkBuffer()
    writer = buffer.begin(1)
    write(writer, text(3))
    buffer.settle(None)
    assert writer.read(0, 10) == text(3)
    second = buffer.begin(2)
    write(second, [b"other"])
    assert (writer.read(1, 2), second.read(0, 10)) == (text(3)[1:2], [b"other"])


def test_a_writer_that_closed_writes_no_more() -> None:
    buffer = ChunkBuffer()
    writer = buffer.begin(1)
    write(writer, text(2))
    writer.close(1)
    assert writer.put(2, b"late")
    assert read(Cursor(buffer)) == text(2)


def test_waiting_ends_with_news_or_at_the_deadline() -> None:
    buffer, clock = ChunkBuffer(), DeadlineClock()
    waiting = [gevent.spawn(buffer.wait, clock, time.monotonic() + 10) for _ in range(450)]
    gevent.sleep(0)
    write(buffer.begin(1), [b"x"])
    gevent.joinall(waiting, timeout=5)
    assert all(greenlet.value is True for greenlet in waiting)
    assert buffer.wait(clock, time.monotonic() + 0.06) is False
    clock.close()


def test_one_that_waits_anew_waits_for_newer_news() -> None:
    buffer, clock = ChunkBuffer(), DeadlineClock()
    woken: list[bool] = []

    def wait_twice() -> None:
        woken.append(buffer.wait(clock, time.monotonic() + 10))
        woken.append(buffer.wait(clock, time.monotonic() + 10))

    waiting = [gevent.spawn(wait_twice) for _ in range(300)]
    gevent.sleep(0)
    buffer.wake()
    gevent.sleep(0.05)
    assert len(woken) == 300
    buffer.wake()
    gevent.joinall(waiting, timeout=5)
    assert woken == [True] * 600
    clock.close()
