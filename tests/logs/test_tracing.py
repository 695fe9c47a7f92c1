"""traceparent and tracestate by the recommendation's own words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightsvc.tracing import MAX_STATE, TraceContext, parse_parent, parse_state

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("header", "sampled"),
    [
        (GOOD, True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-ff", True),  # a bit field, not a number
        (f"00-{TRACE}-{SPAN}-fe", False),
        (f" \t{GOOD}\t ", True),
        (f"cc-{TRACE}-{SPAN}-01", True),  # a later version that looks like ours
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-brings", True),
        (f"cc-{TRACE}-{SPAN}-01-", True),
    ],
)
def test_what_is_valid(header: str, sampled: bool) -> None:
    assert parse_parent(header) == (TRACE, sampled)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        f"ff-{TRACE}-{SPAN}-01",  # the version that is forbidden
        f"0-{TRACE}-{SPAN}-01",
        f"000-{TRACE}-{SPAN}-01",
        f".0-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"cc-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN.upper()}-01",
        f"0A-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-0A",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}1-{SPAN}-01",
        f"00-{TRACE}-{SPAN[:-1]}-01",
        f"00-{TRACE}-{SPAN}1-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-001",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01.",
        f"00-{TRACE}-{SPAN}-01-more",  # version 00 ends here
        f"cc-{TRACE}-{SPAN}-01.what",
        f"cc-{TRACE}-{SPAN}-0",
        f"{GOOD},{GOOD}",  # sent twice
        f"00-{'.' + TRACE[1:]}-{SPAN}-01",
        f"00-{'٤' * 32}-{SPAN}-01",  # digits, but not those
        f"{GOOD}\n",
    ],
)
def test_what_is_not_valid_begins_a_new_trace(header: str | None) -> None:
    assert parse_parent(header) is None
    work = TraceContext.of(header, "congo=1")
    assert work.trace_id != TRACE
    assert work.state == ""  # never read without a valid parent
    assert parse_parent(work.traceparent) == (work.trace_id, False)


def test_work_in_a_callers_trace_has_a_span_of_its_own() -> None:
    work = TraceContext.of(f"cc-{TRACE}-{SPAN}-ff-more", "rojo=1, congo=2")
    child = work.child()

    assert work.trace_id == child.trace_id == TRACE
    assert len({SPAN, work.span_id, child.span_id}) == 3
    # sent as version 00, with the one flag that it knows
    assert work.traceparent == f"00-{TRACE}-{work.span_id}-01"
    assert child.headers == {"traceparent": child.traceparent, "tracestate": "rojo=1,congo=2"}


def test_no_tracestate_is_sent_where_there_is_none() -> None:
    assert TraceContext.of(GOOD, " , ").headers.keys() == {"traceparent"}


KEY = "abcdefghijklmnopqrstuvwxyz0123456789_-*/"
VALUE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in ",=")


@pytest.mark.parametrize(
    ("header", "state"),
    [
        ("foo=1", "foo=1"),
        ("foo=1 \t , \t bar=2, \t baz=3", "foo=1,bar=2,baz=3"),
        ("foo=1,,bar=2, ,", "foo=1,bar=2"),  # empty members are allowed
        ("foo=  1", "foo=  1"),  # a value may begin with spaces
        (f"{KEY}={VALUE}", f"{KEY}={VALUE}"),
        (f"t0@v={'1' * 200}", f"t0@v={'1' * 200}"),
        ("0t@v=1", "0t@v=1"),
        (f"{'z' * 256}=1", f"{'z' * 256}=1"),
        (f"{'t' * 241}@{'v' * 14}=1", f"{'t' * 241}@{'v' * 14}=1"),
        (",".join(f"b{number}=1" for number in range(32)),) * 2,
    ],
)
def test_a_tracestate_is_passed_on(header: str, state: str) -> None:
    assert parse_state(header) == state


@pytest.mark.parametrize(
    "header",
    [
        "foo",
        "foo=",
        "=1",
        "foo =1",
        "FOO=1",
        "foo.bar=1",
        "1foo=1",
        "foo@=1",
        "@foo=1",
        "foo@@bar=1",
        "foo@bar@baz=1",
        "foo=1=2",
        "foo=bär",
        "foo=1\x00",
        "foo=1,foo=2",
        "ok=1,not ok=1",  # one bad member spoils all
        f"{'z' * 257}=1",
        f"{'t' * 242}@v=1",
        f"t@{'v' * 15}=1",
        f"foo={'1' * 257}",
        ",".join(f"b{number}=1" for number in range(33)),
    ],
)
def test_a_tracestate_that_is_not_valid_is_dropped_and_the_trace_goes_on(header: str) -> None:
    work = TraceContext.of(GOOD, header)
    assert (work.trace_id, work.state) == (TRACE, "")


def test_a_long_tracestate_loses_its_longest_members_first_then_its_last() -> None:
    long, short = f"long={'x' * 150}", [f"s{number}={'y' * 60}" for number in range(10)]

    state = parse_state(",".join([short[0], long, *short[1:]]))

    assert len(state) <= MAX_STATE
    assert state == ",".join(short[:8])


def test_no_id_is_zero_and_none_comes_twice() -> None:
    works = [TraceContext.new() for _ in range(500)]
    assert len({work.trace_id for work in works}) == len({work.span_id for work in works}) == 500
    assert all(parse_parent(work.traceparent) for work in works)


@given(st.text(max_size=80), st.text(max_size=80))
def test_whatever_comes_in_what_goes_out_is_valid(parent: str, state: str) -> None:
    for header in (parent, GOOD):
        headers = TraceContext.of(header, state).child().headers
        assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]", headers["traceparent"])
        assert re.fullmatch(r"[!-~][ -~]{0,511}", headers.get("tracestate", "x"))
