"""Whose names a call's lines bear: a real flight and guard, a provider of the test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import gevent
import pytest
from gevent.event import Event

from flightsvc.errors import CallFailed, FallbackAnswer, FlightSvcError, ProviderUnavailable
from flightsvc.facts import CallFacts
from flightsvc.flight.service import SingleFlight
from flightsvc.guard import AiCallGuard
from flightsvc.interview.evaluation import EvaluationInput
from flightsvc.interview.invoker import InterviewAiInvoker
from flightsvc.logs.formats import JsonFormatter
from flightsvc.metrics import Metrics
from flightsvc.providers.base import ModelAnswer, ModelRequest
from flightsvc.providers.models import Models
from flightsvc.settings import Settings
from flightsvc.tracing import TraceContext
from tests.logs.reading import Written, read
from tests.support.redis_server import RedisServer

WORDS = "the candidate's own words"


class Model:
    """A provider that fails as the test says, once it may."""

    name = "test"
    model = "test-model"

    def __init__(self) -> None:
        self.go = Event()
        self.requests: list[ModelRequest] = []
        self.fail: Callable[[ModelRequest], BaseException] = lambda _: ProviderUnavailable()

    def complete(self, request: ModelRequest, timeout_s: float) -> ModelAnswer:
        self.requests.append(request)
        self.go.wait()
        raise self.fail(request)

    def close(self) -> None:
        pass


class Watch:
    """Counts what it hears."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.failures: list[tuple[str, str, str]] = []

    def called(self, facts: CallFacts) -> None:
        self.calls.append(facts.trace_id)

    def failed(self, facts: CallFacts, *, flight_id: str) -> None:
        self.failures.append((facts.trace_id, facts.code, flight_id))


class Scene:
    """An invoker and what it writes."""

    def __init__(self, **settings: Any) -> None:
        stages = {"evaluation": {"retry_delays_ms": ()}}
        given = {"mode": "local", "stages": stages, **settings}
        self.settings = Settings.model_validate(given)
        self.flights = SingleFlight(self.settings)
        self.model, self.watch = Model(), Watch()
        guard = AiCallGuard(self.settings, Metrics.off())
        self.invoker = InterviewAiInvoker(
            self.settings, self.flights, guard, self.model, self.watch
        )
        self.written = Written(JsonFormatter(content=self.settings.log_content))

    def ask(self, trace: TraceContext, session: str = "s1", facts: CallFacts | None = None) -> Any:
        asked = EvaluationInput(question_number=1, question="Why?", answer=WORDS)
        with pytest.raises(FlightSvcError) as failed:
            self.invoker.evaluate(session, asked, tenant="acme", trace=trace, facts=facts)
        return failed.value

    def failures(self) -> list[dict[str, Any]]:
        return read("\n".join(self.written.lines), "failure")


@pytest.fixture
def make() -> Iterator[Callable[..., Scene]]:
    made: list[Scene] = []

    def scene(**settings: Any) -> Scene:
        made.append(Scene(**settings))
        made[-1].written.__enter__()
        return made[-1]

    yield scene
    for each in made:
        each.written.__exit__()
        each.flights.close()


def test_one_failure_line_for_all_who_waited_and_it_bears_the_first_callers_trace(
    make: Callable[..., Scene],
) -> None:
    scene = make()
    traces = [TraceContext.new() for _ in range(10)]
    first = gevent.spawn(scene.ask, traces[0])
    while not scene.model.requests:
        gevent.sleep(0)
    others = [gevent.spawn(scene.ask, trace) for trace in traces[1:]]
    gevent.sleep(0)
    scene.model.go.set()
    told = [waiting.get() for waiting in (first, *others)]

    (line,) = scene.failures()
    assert {error.flight_id for error in told} == {line["flight_id"]}
    assert line["trace_id"] == traces[0].trace_id
    assert (line["session_id"], line["tenant"], line["stage"]) == ("s1", "acme", "evaluation")
    assert (line["code"], line["level"]) == ("PROVIDER_UNAVAILABLE", "warning")
    assert (line["role"], line["fence"]) == ("local", 0)
    assert line["input_length"] == len("Why?" + WORDS)
    assert scene.watch.calls == [traces[0].trace_id]
    assert scene.watch.failures == [(traces[0].trace_id, "PROVIDER_UNAVAILABLE", line["flight_id"])]


def test_the_first_caller_may_be_gone_when_its_call_fails(make: Callable[..., Scene]) -> None:
    scene = make()
    traces = [TraceContext.new(), TraceContext.new()]
    first = gevent.spawn(scene.ask, traces[0])
    while not scene.model.requests:
        gevent.sleep(0)
    second = gevent.spawn(scene.ask, traces[1])
    gevent.sleep(0)
    first.kill()
    scene.model.go.set()
    second.get()

    (line,) = scene.failures()
    assert line["trace_id"] == traces[0].trace_id


def test_the_model_is_asked_in_the_first_callers_trace_with_a_span_of_its_own(
    make: Callable[..., Scene],
) -> None:
    scene = make(stages={"evaluation": {"retry_delays_ms": (100,)}})
    scene.model.go.set()
    trace = TraceContext.of(f"00-{'ab' * 16}-{'cd' * 8}-01", "rojo=1")
    scene.ask(trace)

    sent = [request.trace_headers for request in scene.model.requests]
    assert len(sent) == 2
    assert {headers["tracestate"] for headers in sent} == {"rojo=1"}
    parts = [headers["traceparent"].split("-") for headers in sent]
    assert {(part[0], part[1], part[3]) for part in parts} == {("00", "ab" * 16, "01")}
    assert len({trace.span_id, *(part[2] for part in parts)}) == 3


@pytest.mark.parametrize("content", [False, True])
def test_what_nobody_foresaw_keeps_its_stack_and_its_words_only_if_they_may_be_logged(
    make: Callable[..., Scene], content: bool
) -> None:
    scene = make(log_content=content)
    scene.model.go.set()
    scene.model.fail = lambda request: LookupError(request.messages[1].content)
    error = scene.ask(TraceContext.new())

    (line,) = scene.failures()
    assert isinstance(error, CallFailed)
    assert line["level"] == "error"
    assert line["code"] == error.code
    assert "builtins.LookupError" in line["stack"]
    assert "in complete" in line["stack"]
    assert (WORDS in json.dumps(line)) is content
    assert WORDS not in str(error)


def test_a_fallback_answer_is_logged_as_the_failure_that_it_stands_for(
    make: Callable[..., Scene],
) -> None:
    scene = make()
    scene.model.go.set()
    failure = ProviderUnavailable(upstream_status=500)
    value = {"score": 0}
    scene.model.fail = lambda _: FallbackAnswer(value, action="template", failure=failure)
    asked = EvaluationInput(question_number=1, question="Why?", answer=WORDS)
    facts = CallFacts()
    result = scene.invoker.evaluate("s1", asked, facts=facts)

    (line,) = scene.failures()
    assert (result.value, result.fallback) == (value, "template")
    assert (line["code"], line["fallback_action"]) == ("PROVIDER_UNAVAILABLE", "template")
    assert line["detail"].endswith("[500]")
    assert (facts.code, facts.fallback_action) == ("PROVIDER_UNAVAILABLE", "template")


def test_equal_inputs_have_equal_hashes_whoever_asks(make: Callable[..., Scene]) -> None:
    scene = make()
    scene.model.go.set()
    texts = [("Why?", "ab", ""), ("Why?", "ab", ""), ("Why?a", "b", ""), ("Why?", "a", "b")]
    seen = []
    for number, (question, answer, resume) in enumerate(texts):
        facts = CallFacts()
        asked = EvaluationInput(
            question_number=1, question=question, answer=answer, resume_context=resume
        )
        with pytest.raises(CallFailed):
            scene.invoker.evaluate(f"s{number}", asked, facts=facts)
        seen.append(facts.input_hash)
    assert seen[0] == seen[1]
    assert len(set(seen)) == 3
    assert {len(each) for each in seen} == {32}


def test_a_call_that_is_stopped_is_no_failure(make: Callable[..., Scene]) -> None:
    scene = make()
    waiting = gevent.spawn(scene.ask, TraceContext.new())
    while not scene.model.requests:
        gevent.sleep(0)
    scene.flights.close()
    waiting.get()
    assert scene.failures() == []
    assert [code for _, code, _ in scene.watch.failures] == ["DRAINING"]  # what the caller is told


class Deaf(Model):
    """Its client does not hear of any time limit."""

    def complete(self, request: ModelRequest, timeout_s: float) -> ModelAnswer:
        self.requests.append(request)
        while True:
            with suppress(gevent.Timeout):
                gevent.sleep(60)


@pytest.mark.parametrize("shared", [False, True], ids=["local", "redis"])
def test_a_call_that_is_stopped_at_its_flight_s_limit_has_its_line(
    make: Callable[..., Scene], redis_server: RedisServer, namespace: str, shared: bool
) -> None:
    where = {"mode": "hybrid", "redis_url": redis_server.url, "namespace": namespace}
    times = {"timeout_ms": 200, "budget_ms": 300, "retry_delays_ms": ()}
    scene = make(stages={"evaluation": times}, **(where if shared else {}))
    scene.model = Deaf()
    scene.invoker._tools = replace(scene.invoker._tools, models=Models(scene.model))
    scene.invoker._models = Models(scene.model)
    trace = TraceContext.new()
    told = [gevent.spawn(scene.ask, trace) for _ in range(3)]
    assert {each.get().code for each in told} == {"BUDGET_EXHAUSTED"}
    gevent.sleep(0.05)

    (line,) = scene.failures()
    assert (line["code"], line["fallback_action"]) == ("BUDGET_EXHAUSTED", None)
    assert (line["level"], line["trace_id"]) == ("warning", trace.trace_id)
    assert line["role"] == ("owner" if shared else "local")
    assert 300 <= line["duration_ms"] < 2_000
    assert line["flight_id"]
    assert len(line["fingerprint"]) == 16
    assert [code for _, code, _ in scene.watch.failures] == ["BUDGET_EXHAUSTED"]


def test_who_is_turned_away_is_counted_and_not_logged_as_a_call(make: Callable[..., Scene]) -> None:
    scene = make(max_waiters=1, worker_connections=2)
    first = gevent.spawn(scene.ask, TraceContext.new())
    while not scene.model.requests:
        gevent.sleep(0)
    trace = TraceContext.new()
    error = scene.ask(trace, session="s2")
    scene.model.go.set()
    first.get()

    assert error.code == "TOO_MANY_WAITERS"
    assert len(scene.failures()) == 1  # of the first one's call
    assert scene.watch.failures[0] == (trace.trace_id, "TOO_MANY_WAITERS", error.flight_id)
    assert [code for _, code, _ in scene.watch.failures[1:]] == ["PROVIDER_UNAVAILABLE"]
    assert len(scene.watch.calls) == 2


def test_an_answer_that_cannot_be_kept_is_counted_once(make: Callable[..., Scene]) -> None:
    judged = {
        "score": 61,
        "logic_ok": True,
        "missing_points": [],
        "feedback": "x" * 5_000,
        "follow_up_needed": False,
        "follow_up_question": None,
    }

    class Long(Model):
        def complete(self, request: ModelRequest, timeout_s: float) -> ModelAnswer:
            self.requests.append(request)
            self.go.wait()
            return ModelAnswer(json.dumps(judged), self.model, simulated=False)

    scene = make(max_result_bytes=1_024)
    scene.model = Long()
    scene.invoker._models = Models(scene.model)
    waiting = [gevent.spawn(scene.ask, TraceContext.new()) for _ in range(5)]
    while not scene.model.requests:
        gevent.sleep(0)
    scene.model.go.set()
    assert {each.get().code for each in waiting} == {"RESULT_TOO_LARGE"}
    assert [code for _, code, _ in scene.watch.failures] == ["RESULT_REJECTED"]
    assert len(scene.watch.calls) == 1
