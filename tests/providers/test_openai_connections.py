"""Time-outs, cuts, kills and kept connections, over real sockets."""

from __future__ import annotations

import socket
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import gevent
import pytest

from flightsvc.errors import AnswerInvalid, ProviderError, ProviderTimeout, ProviderUnreachable
from flightsvc.metrics import Metrics
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.providers import ModelRequest, Provider

Ask = Callable[..., ModelRequest]

ALL_GONE = {"open_connections": 0, "open_calls": 0}


@pytest.mark.parametrize("cut", ["fin", "reset"])
@pytest.mark.parametrize(
    "behave",
    [
        {"cut_before_answer": True},
        {"cut_after_bytes": 0},
        {"cut_after_bytes": 10},
        {"cut_after_bytes": 10, "framing": "chunked"},
        {"cut_after_bytes": 20, "framing": "chunked", "write_bytes": 10},
    ],
)
def test_a_cut_answer_is_no_answer(
    server: ModelServerProcess, provider: Provider, ask: Ask, behave: dict[str, Any], cut: str
) -> None:
    server.script([{"behave": {**behave, "cut": cut}}])
    with pytest.raises(ProviderUnreachable):
        provider.complete(ask(), 10)
    assert server.until(**ALL_GONE)["calls"] == 1


def test_a_body_shorter_than_declared_is_no_answer(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"behave": {"declared_length": 5_000, "keep_alive": False}}])
    with pytest.raises(ProviderUnreachable):
        provider.complete(ask(), 10)


def test_an_unframed_body_that_is_cut_is_no_answer(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"behave": {"framing": "close", "cut_after_bytes": 100}}])
    with pytest.raises(AnswerInvalid):
        provider.complete(ask(), 10)


def timed_out(provider: Provider, request: ModelRequest, timeout_s: float) -> float:
    """Seconds until a call that times out says so."""
    started = time.monotonic()
    with pytest.raises(ProviderTimeout):
        provider.complete(request, timeout_s)
    return time.monotonic() - started


@pytest.mark.parametrize("behave", [{"never_answer": True}, {"silent_after_bytes": 10}])
def test_silence_ends_with_the_calls_time(
    server: ModelServerProcess, provider: Provider, ask: Ask, behave: dict[str, Any]
) -> None:
    server.script([{"behave": behave}])
    assert 0.3 <= timed_out(provider, ask(), 0.3) < 3
    assert server.until(**ALL_GONE)["cancelled"] == 1


def test_silence_inside_the_answer_has_a_shorter_limit(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"behave": {"silent_after_bytes": 10}}])
    assert timed_out(provider, ask(between_bytes_s=0.2), 30) < 10
    server.until(cancelled=1, **ALL_GONE)


def test_thinking_long_is_not_silence_inside_the_answer(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"behave": {"latency_ms": 500}}])
    assert provider.complete(ask(between_bytes_s=0.2), 30).text


def test_the_first_byte_may_have_a_limit_of_its_own(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"behave": {"never_answer": True}}])
    assert timed_out(provider, ask(first_byte_s=0.2), 30) < 10
    server.until(cancelled=1, **ALL_GONE)


def test_a_server_that_drips_cannot_stretch_the_call(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"behave": {"write_bytes": 1, "write_delay_ms": 50}}])
    assert 0.5 <= timed_out(provider, ask(between_bytes_s=10), 0.5) < 5
    assert server.until(**ALL_GONE)["cancelled"] == 1  # closed, and not kept for the next call


def test_no_time_left_is_no_call(server: ModelServerProcess, provider: Provider, ask: Ask) -> None:
    timed_out(provider, ask(), 0)
    assert server.stats()["calls"] == 0


def test_connecting_has_its_own_limit(make: Callable[..., Provider], ask: Ask) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        address = deaf.getsockname()
        crowd = [socket.socket() for _ in range(4)]  # fill the queue that nobody accepts from
        for each in crowd:
            each.setblocking(False)
            each.connect_ex(address)
        provider = make(
            openai_base_url=f"http://127.0.0.1:{address[1]}/v1", openai_connect_timeout_ms=200
        )
        assert timed_out(provider, ask(), 30) < 10
        for each in crowd:
            each.close()


@pytest.mark.parametrize(
    "behave",
    [{"never_answer": True}, {"write_bytes": 1, "write_delay_ms": 50}, {"silent_after_bytes": 9}],
)
def test_killing_the_caller_closes_the_connection(
    server: ModelServerProcess,
    provider: Provider,
    ask: Ask,
    metrics: Metrics,
    behave: dict[str, Any],
) -> None:
    server.script([{"behave": behave}])
    caller = gevent.spawn(provider.complete, ask(), 60)
    server.until(open_calls=1)
    gevent.sleep(0.05)  # so that some of the answer is read where there is some
    caller.kill()
    assert server.until(**ALL_GONE)["cancelled"] == 1
    assert not any(name.startswith("provider.") for name in metrics.snapshot())


def test_somebody_elses_timeout_stays_what_it_is(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"behave": {"never_answer": True}}])
    with pytest.raises(gevent.Timeout) as caught, gevent.Timeout(0.2) as outer:
        provider.complete(ask(), 60)
    assert caught.value is outer
    server.until(cancelled=1, **ALL_GONE)


def test_h33_ten_calls_run_at_once_and_their_connections_serve_the_next_ten(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"behave": {"gate": "all-here"}}])
    first = [gevent.spawn(provider.complete, ask(f"question {n}"), 30) for n in range(10)]
    assert server.until(open_calls=10)["max_open_calls"] == 10
    server.open_gate("all-here")
    gevent.joinall(first, raise_error=True)
    gevent.joinall(
        [gevent.spawn(provider.complete, ask(f"question {n}"), 30) for n in range(10)],
        raise_error=True,
    )
    stats = server.stats()
    assert (stats["calls"], stats["connections"], stats["open_connections"]) == (20, 10, 10)
    assert sorted(stats["by_key"].values()) == [2] * 10
    provider.close()
    server.until(**ALL_GONE)


def test_one_connection_serves_calls_one_after_the_other(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"match": {"nth": [2]}, "behave": {"status": 503}}])
    provider.complete(ask(), 10)
    with pytest.raises(ProviderError):
        provider.complete(ask(), 10)
    provider.complete(ask(), 10)
    assert server.stats()["connections"] == 1


def test_a_connection_that_the_server_closed_between_calls_is_replaced(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"match": {"times": 3}, "behave": {"close_after_ms": 0}}])
    for _ in range(4):
        provider.complete(ask(), 10)
        if server.stats()["calls"] < 4:
            server.until(**ALL_GONE)
    stats = server.stats()
    assert (stats["calls"], stats["connections"]) == (4, 4)


def test_a_call_that_may_have_been_carried_out_is_not_sent_again(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    # given a kept connection that the server closes when the next request is on its way
    server.script([{"match": {"nth": [2]}, "behave": {"cut_before_answer": True}}])
    provider.complete(ask(), 10)
    with pytest.raises(ProviderUnreachable):
        provider.complete(ask(), 10)
    stats = server.until(open_connections=0)
    assert (stats["calls"], stats["connections"]) == (2, 1)


def test_an_answer_over_the_limit_is_refused(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"behave": {"pad_bytes": 9 * 1024 * 1024}}])
    with pytest.raises(AnswerInvalid) as caught:
        provider.complete(ask(), 30)
    assert caught.value.code == "AI_ANSWER_TOO_LARGE"
    server.until(**ALL_GONE)


def test_h31_a_small_body_cannot_fill_the_memory(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"behave": {"pad_bytes": 200 * 1024 * 1024, "encoding": "gzip"}}])
    tracemalloc.start()
    try:
        with pytest.raises(AnswerInvalid) as caught:
            provider.complete(ask(), 60)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.code == "AI_ANSWER_TOO_LARGE"
    assert peak < 30 * 1024 * 1024
