"""H10: however a call fails, everybody is told, nobody repeats it, and the key is free."""

from __future__ import annotations

import gevent
import pytest

from flightsvc.errors import (
    AnswerInvalid,
    CallFailed,
    FailureType,
    ProviderRateLimited,
    ProviderRejected,
)
from flightsvc.flight import FlightContext, FlightKey, SingleFlight
from tests.flight.conftest import Worker
from tests.flight.flying import STEADY, Caller, Model, ask, await_following, count

KEY = FlightKey("scoring", "s1", "an answer")

RAISED = [
    pytest.param(ValueError("secret"), FailureType.UNEXPECTED, id="ValueError"),
    pytest.param(gevent.Timeout(1), FailureType.TIMEOUT, id="gevent.Timeout"),
    pytest.param(TimeoutError(), FailureType.TIMEOUT, id="TimeoutError"),
    pytest.param(gevent.GreenletExit(), FailureType.UNEXPECTED, id="GreenletExit"),
    pytest.param(SystemExit(1), FailureType.UNEXPECTED, id="SystemExit"),
    pytest.param(GeneratorExit(), FailureType.UNEXPECTED, id="GeneratorExit"),
    pytest.param(RecursionError(), FailureType.UNEXPECTED, id="RecursionError"),
    pytest.param(StopIteration(), FailureType.UNEXPECTED, id="StopIteration"),
]


def fly(one: SingleFlight, two: SingleFlight, model: Model) -> list[Caller]:
    """Callers in the owner's worker and elsewhere, all waiting; then the model goes on."""
    callers = ask(one, KEY, model, 2)
    model.began.wait()
    callers += ask(two, KEY, model, 2)
    await_following(two)
    model.let_go()
    return callers


@pytest.mark.parametrize(("raised", "failure_type"), RAISED)
def test_h10_whatever_a_call_raises_reaches_everybody_and_the_key_is_free(
    worker: Worker, raised: BaseException, failure_type: FailureType
) -> None:
    one, two = worker(), worker()
    model = Model(held=True, error=raised)
    callers = fly(one, two, model)
    for caller in callers:
        error = caller.error(1.0)
        assert isinstance(error, CallFailed)
        assert error.failure_type is failure_type
        assert error.retryable
        assert (error.flight_id, error.fence) == (KEY.flight_id, model.fences[0])
        assert "secret" not in str(error)
    # in the worker that made the call the cause is known
    assert callers[0].error().__cause__ is raised
    assert model.calls == 1
    # and the next caller, on either worker, makes a call
    assert two.run(KEY, lambda ctx: ctx.attempt).value == 2


def test_h10_no_two_callers_share_an_exception(worker: Worker) -> None:
    one = worker()
    errors = [c.error() for c in ask(one, KEY, Model(takes_s=0.05, error=ValueError()), 3)]
    assert len({id(error) for error in errors}) == 3


@pytest.mark.parametrize(
    "raised",
    [
        pytest.param(ProviderRejected("asking again does not help"), id="not retryable"),
        pytest.param(ProviderRateLimited("later", retry_after_s=30), id="not before a time"),
    ],
)
def test_a_failure_that_a_call_now_would_repeat_is_replayed(
    worker: Worker, raised: ProviderRejected | ProviderRateLimited
) -> None:
    one, two = worker(), worker()
    model = Model(held=True, error=raised)
    for caller in fly(one, two, model):
        caller.error()
    again = Model()
    for flights in (one, two, worker()):
        error = Caller(flights, KEY, again).error()
        assert isinstance(error, CallFailed)
        assert (error.code, error.status) == (raised.code, raised.status)
        assert error.retryable is raised.retryable
        assert error.retry_after_s is not None
        assert 20 < error.retry_after_s <= 60
    assert again.calls == 0


def test_the_failure_of_five_calls_in_a_row_stands(worker: Worker) -> None:
    one, two = worker(), worker()
    model = Model(error=ValueError())
    for n in range(7):
        assert Caller((one, two)[n % 2], KEY, model).error().__class__ is CallFailed
    assert model.calls == 5


def test_a_success_forgives_the_failures_before_it(worker: Worker) -> None:
    one = worker()
    for _ in range(3):
        model = Model(error=ValueError())
        for _ in range(3):
            Caller(one, KEY, model, replay=False).error()
        assert model.calls == 3
        assert one.run(KEY, Model(), replay=False).value == {"call": 1}


def test_a_call_over_its_budget_is_stopped_and_everybody_is_told(worker: Worker) -> None:
    short = {"stages": {"default": {"timeout_ms": 200, "budget_ms": 300, "retry_delays_ms": []}}}
    one, two = worker(**STEADY, **short), worker(**STEADY, **short)
    model = Model(takes_s=30)
    callers = ask(one, KEY, model)
    model.began.wait()
    callers += ask(two, KEY, model)
    for caller in callers:
        error = caller.error(2)
        assert isinstance(error, CallFailed)
        assert (error.failure_type, error.code) == (FailureType.TIMEOUT, "BUDGET_EXHAUSTED")
    assert (model.calls, model.ended) == (1, 0)


def test_a_call_is_told_that_its_answer_is_not_wanted(worker: Worker) -> None:
    short = {"stages": {"default": {"timeout_ms": 100, "budget_ms": 100, "retry_delays_ms": []}}}
    one = worker(**STEADY, **short)
    heard: list[bool] = []

    def call(ctx: FlightContext) -> None:
        try:
            gevent.sleep(30)
        finally:
            heard.append(ctx.cancelled.is_set())

    assert isinstance(Caller(one, KEY, call).error(2), CallFailed)
    assert heard == [True]


def test_what_a_call_leaves_running_does_not_hurt_the_flight(worker: Worker) -> None:
    one = worker()

    def call(ctx: FlightContext) -> str:
        gevent.Timeout.start_new(0.01)  # strikes, if it can, while the answer is being stored
        return "answer"

    assert one.run(KEY, call).value == "answer"
    gevent.sleep(0.05)
    assert worker().run(KEY, Model()).value == "answer"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        pytest.param({1: "a"}, "RESULT_NOT_SERIALIZABLE", id="keys that are no text"),
        pytest.param(float("nan"), "RESULT_NOT_SERIALIZABLE", id="NaN"),
        pytest.param(object(), "RESULT_NOT_SERIALIZABLE", id="an object"),
        pytest.param("x" * 2_000, "RESULT_TOO_LARGE", id="too much text"),
        pytest.param(b"x" * 2_000, "RESULT_TOO_LARGE", id="too many bytes"),
    ],
)
def test_a_value_that_cannot_be_stored_is_a_failure_for_all(
    worker: Worker, value: object, code: str
) -> None:
    one, two = worker(max_result_bytes=1_024), worker(max_result_bytes=1_024)
    model = Model(held=True, value=value)
    for caller in fly(one, two, model):
        error = caller.error()
        assert isinstance(error, CallFailed)
        assert (error.code, error.retryable) == (code, False)
        assert "xxx" not in str(error)
    # the same call would return the same again
    assert isinstance(Caller(two, KEY, model).error(), CallFailed)
    assert model.calls == 1
    assert count(one, "flight.ends.scoring.failed") == 1


def test_an_error_of_the_tree_keeps_what_it_says(worker: Worker) -> None:
    one, two = worker(), worker()
    raised = AnswerInvalid("the answer is empty", code="EMPTY_ANSWER")
    for caller in fly(one, two, Model(held=True, error=raised)):
        error = caller.error()
        assert isinstance(error, CallFailed)
        assert error.failure_type is FailureType.VALIDATION
        assert (error.code, error.status, error.retryable) == ("EMPTY_ANSWER", 503, True)


def test_a_failure_for_good_says_to_everybody_when_it_is_forgotten(worker: Worker) -> None:
    one = worker(stages={"default": {"failure_ttl_s": 40}})
    first = Caller(one, KEY, model := Model(error=ProviderRejected())).error()
    later = Caller(one, KEY, model).error()
    for error in (first, later):
        assert isinstance(error, CallFailed)
        assert error.retry_after_s is not None
        assert 30 < error.retry_after_s <= 40
    assert model.calls == 1
