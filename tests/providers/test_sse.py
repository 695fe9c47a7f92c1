"""Server-sent events from bytes, however they are cut and written: H28, H29."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightsvc.errors import AnswerInvalid
from flightsvc.providers.sse import SseEvent, SseParser

TEXTS = ["{}", "é", "你好", "😀😀", "a b"]


def written(end: str, *, space: bool = True, comments: bool = False) -> bytes:
    lines = []
    for text in TEXTS:
        lines += [": keep-alive", ":"] if comments else []
        lines += [f"data:{' ' if space else ''}{text}", ""]
    return (end.join(lines) + end).encode()


def parsed(data: bytes, cuts: list[int]) -> list[str]:
    parser, found, at = SseParser(), [], 0
    for cut in [*sorted(cuts), len(data)]:
        found += list(parser.feed(data[at:cut]))
        at = max(at, cut)
    return [event.data.decode() for event in [*found, *parser.end()]]


@given(
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.booleans(),
    st.lists(st.integers(0, 120), max_size=6),
)
def test_h28_h29_any_cut_and_line_end_gives_the_same_events(
    end: str, space: bool, comments: bool, cuts: list[int]
) -> None:
    assert parsed(written(end, space=space, comments=comments), cuts) == TEXTS


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_h28_byte_by_byte(end: str) -> None:
    data = written(end)
    assert parsed(data, list(range(len(data)))) == TEXTS


def test_h29_an_event_is_there_with_its_last_cr() -> None:
    assert list(SseParser().feed(b"data: a\r\r")) == [SseEvent(b"a")]


def test_lines_names_fields_and_a_bom() -> None:
    data = b"\xef\xbb\xbfevent: error\nid: 7\nretry: 1\nnonsense\ndata: a\ndata:  b\n\nevent: x\n\n"
    assert list(SseParser().feed(data)) == [SseEvent(b"a\n b", b"error")]


def test_an_event_without_data_is_none() -> None:
    data = b"data:\n\ndata\n\nevent: x\ndata:\ndata:\n\ndata: a\n\n"
    assert list(SseParser().feed(data)) == [SseEvent(b"a")]


def test_a_last_event_without_its_empty_line_counts() -> None:
    parser = SseParser()
    assert list(parser.feed(b"data: [DONE]")) == []
    assert list(parser.end()) == [SseEvent(b"[DONE]")]


@pytest.mark.parametrize("line", [b"data: " + b"a" * 100, b"data: aaaaaaaaaaaa\n" * 10])
def test_an_event_without_end_is_refused(line: bytes) -> None:
    with pytest.raises(AnswerInvalid):
        list(SseParser(limit=99).feed(line))
