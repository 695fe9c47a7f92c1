"""One scripted answer from its first wait to its last byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import gevent

from flightsvc.model_server import wire
from flightsvc.model_server.http import Connection, EndOfConnection, ResetConnection
from flightsvc.model_server.rules import Behave
from flightsvc.model_server.script import Call
from flightsvc.model_server.sender import CutShort, Sender, stay_silent

#: Waits until a gate of that name is opened.
WaitAtGate = Callable[[str], None]


def play(
    conn: Connection, call: Call, behave: Behave, wait_at_gate: WaitAtGate, *, keep_alive: bool
) -> None:
    """Answer a call as the script says.

    :param keep_alive: whether the client wants to keep the connection.
    :raises EndOfConnection: the script, the framing or the client ends the connection.
    """
    if behave.cut_before_answer:
        raise ResetConnection if behave.cut == "reset" else EndOfConnection
    if behave.never_answer:
        stay_silent()
    gevent.sleep(behave.latency_ms / 1000)
    streams = _streams(call, behave)
    if behave.gate is not None and not (streams and behave.gate_after_chunks):
        wait_at_gate(behave.gate)
    kept = keep_alive and behave.keep_alive
    try:
        if streams:
            _stream(conn, call, behave, wait_at_gate, keep_alive=kept)
        else:
            _plain(conn, call, behave, keep_alive=kept)
    except CutShort:
        pass
    if not kept:
        raise EndOfConnection


def _streams(call: Call, behave: Behave) -> bool:
    """Whether the answer is a stream; a refusal is none, but for a workflow's with a code."""
    refused = behave.code is not None and call.kind != "workflow"
    return call.stream and behave.status == 200 and behave.body is None and not refused


def _plain(conn: Connection, call: Call, behave: Behave, *, keep_alive: bool) -> None:
    framing = behave.framing or "length"
    sender = Sender(conn, behave, framing)
    pieces = [piece for piece in wire.plain_body(call, behave) if piece]
    length = sum(map(len, pieces))
    sender.head("application/json", length, keep_alive=keep_alive and framing != "close")
    for piece in pieces:
        sender.body(piece)
    sender.end()


def _stream(
    conn: Connection, call: Call, behave: Behave, wait_at_gate: WaitAtGate, *, keep_alive: bool
) -> None:
    framing = behave.framing or "chunked"
    sender = Sender(conn, behave, framing)
    length = sum(map(len, _events(call, behave))) if framing == "length" else None
    sender.head("text/event-stream", length, keep_alive=keep_alive and framing != "close")
    first = 0 if behave.events is None else 1
    for number, event in enumerate(_events(call, behave), first):
        gevent.sleep(_wait_s(behave, number))
        sender.body(event)
        if behave.gate is not None and number == behave.gate_after_chunks > 0:
            wait_at_gate(behave.gate)
        if number == behave.cut_after_chunks:
            if behave.stream_error is not None:
                sender.body(wire.event(behave.stream_error, behave))
            sender.cut()
    sender.end()


def _wait_s(behave: Behave, number: int) -> float:
    """The time before an event, in s."""
    if number == 0:
        return 0
    gap_ms = behave.gaps_ms[(number - 1) % len(behave.gaps_ms)] if behave.gaps_ms else 0
    return (behave.chunk_delay_ms + gap_ms) / 1000


def _events(call: Call, behave: Behave) -> Iterator[bytes]:
    """The events of a stream: the role (number 0), one a delta (from number 1 on), the ending."""
    if behave.events is not None:
        yield from (wire.event(each, behave) for each in behave.events)
        if behave.done:
            yield wire.event("[DONE]", behave)
        return
    if call.kind == "workflow":
        yield from wire.workflow_frames(call, behave)
        return
    yield wire.delta_event(call, behave, {"role": "assistant", "content": ""}, None)
    for delta in wire.deltas(call, behave):
        yield wire.delta_event(call, behave, {"content": delta}, None)
    if behave.stream_error is not None and behave.cut_after_chunks is None:
        yield wire.event(behave.stream_error, behave)
        return
    if behave.finish_reason is not None:
        yield wire.delta_event(call, behave, {}, behave.finish_reason)
    options = call.document.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage") is True:
        yield wire.usage_event(call, behave)
    if behave.done:
        yield wire.event("[DONE]", behave)
