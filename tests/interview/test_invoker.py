"""The invoker with a real flight and a real guard; what it asks is a provider of the test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from flask import Flask, has_app_context, has_request_context
from gevent.event import Event

from flightsvc.errors import CallFailed, FlightSvcError
from flightsvc.flight.service import SingleFlight
from flightsvc.guard import AiCallGuard
from flightsvc.interview.evaluation import EvaluationInput
from flightsvc.interview.invoker import InterviewAiInvoker
from flightsvc.metrics import Metrics
from flightsvc.providers.base import ModelAnswer, ModelRequest
from flightsvc.settings import Settings

JUDGEMENT = {
    "score": 61,
    "logic_ok": True,
    "missing_points": [],
    "feedback": "Good.",
    "follow_up_needed": False,
    "follow_up_question": None,
}


class Model:
    """A provider whose every answer is a function of the test."""

    name = "test"
    model = "test-model"

    def __init__(self, say: Callable[[ModelRequest], str]) -> None:
        self.say = say
        self.requests: list[ModelRequest] = []
        self.limits: list[float] = []

    def complete(self, request: ModelRequest, timeout_s: float) -> ModelAnswer:
        self.requests.append(request)
        self.limits.append(timeout_s)
        return ModelAnswer(self.say(request), self.model, simulated=False)

    def close(self) -> None:
        pass


def good(_request: ModelRequest) -> str:
    return json.dumps(JUDGEMENT)


def good_after(go: Event) -> Callable[[ModelRequest], str]:
    """A good answer, once ``go`` is set."""

    def say(request: ModelRequest) -> str:
        go.wait()
        return good(request)

    return say


Make = Callable[..., InterviewAiInvoker]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes an invoker around a model; stage settings by keyword."""
    made: list[SingleFlight] = []

    def invoker(model: Model, **stage: Any) -> InterviewAiInvoker:
        stages = {"evaluation": {"retry_delays_ms": (), **stage}}
        settings = Settings.model_validate({"mode": "local", "stages": stages})
        made.append(SingleFlight(settings))
        return InterviewAiInvoker(settings, made[-1], AiCallGuard(settings, Metrics.off()), model)

    yield invoker
    for flights in made:
        flights.close()


def asked(answer: str = "A number that rises.") -> EvaluationInput:
    return EvaluationInput(question_number=1, question="What is a fence?", answer=answer)


def test_equal_questions_are_one_call_and_one_answer(make: Make) -> None:
    go = Event()
    model = Model(good_after(go))
    invoker = make(model)

    waiting = [gevent.spawn(invoker.evaluate, "s1", asked(), tenant="acme") for _ in range(50)]
    while not model.requests:
        gevent.sleep(0)
    go.set()
    results = [each.get() for each in waiting]
    later = invoker.evaluate("s1", asked(" A number that rises.\r\n"), tenant="acme")

    assert len(model.requests) == 1
    assert {json.dumps(result.value) for result in results} == {
        json.dumps({**JUDGEMENT, "simulated": False})
    }
    assert later.role == "l1"
    assert later.json_bytes == results[0].json_bytes


def test_the_model_gets_the_prompt_the_stage_and_the_times(make: Make) -> None:
    model = Model(good)

    make(model, timeout_ms=700, between_bytes_ms=300).evaluate("s1", asked())

    request = model.requests[0]
    assert request.stage == "evaluation"
    assert request.json_answer
    assert request.between_bytes_s == 0.3
    assert json.loads(request.messages[1].content)["answer"] == "A number that rises."
    assert 0 < model.limits[0] <= 0.7


def test_the_call_has_no_flask_context(make: Make) -> None:
    seen: list[bool] = []

    def say(request: ModelRequest) -> str:
        seen.extend((has_request_context(), has_app_context()))
        return good(request)

    with Flask("host").test_request_context("/"):
        make(Model(say)).evaluate("s1", asked())

    assert seen == [False, False]


def test_an_answer_that_does_not_fit_is_a_failure_and_not_stored(make: Make) -> None:
    texts = iter(['{"score": 61}', json.dumps(JUDGEMENT)])
    model = Model(lambda _request: next(texts))
    invoker = make(model)

    with pytest.raises(CallFailed) as failed:
        invoker.evaluate("s1", asked())
    result = invoker.evaluate("s1", asked())

    assert failed.value.code == "AI_MODEL_OUTPUT_MALFORMED"
    assert (failed.value.status, failed.value.retryable) == (503, True)
    assert result.value["score"] == 61
    assert len(model.requests) == 2


def test_no_place_for_the_call_is_overload(make: Make) -> None:
    go = Event()
    model = Model(good_after(go))
    invoker = make(model, concurrency=1, queue=0)
    first = gevent.spawn(invoker.evaluate, "s1", asked())
    while not model.requests:
        gevent.sleep(0)

    with pytest.raises(FlightSvcError) as refused:
        invoker.evaluate("s1", asked("Another answer."))
    go.set()

    assert (refused.value.status, refused.value.code) == (503, "OVERLOAD")
    assert first.get().value["score"] == 61
    assert len(model.requests) == 1


def test_what_nobody_foresaw_is_logged_once_without_its_words(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    go = Event()

    def say(request: ModelRequest) -> str:
        go.wait()
        raise LookupError(request.messages[1].content)

    model = Model(say)
    invoker = make(model)

    def ask() -> FlightSvcError:
        with pytest.raises(CallFailed) as failed:
            invoker.evaluate("s1", asked("my own words"))
        return failed.value

    waiting = [gevent.spawn(ask) for _ in range(5)]
    while not model.requests:
        gevent.sleep(0)
    go.set()
    told = [each.get() for each in waiting]

    assert {(error.status, error.code) for error in told} == {(500, "AI_UNKNOWN_ERROR")}
    assert "my own words" not in "".join(map(str, told))
    assert len(caplog.records) == 1
    assert "LookupError" in caplog.text
    assert "my own words" not in caplog.text
