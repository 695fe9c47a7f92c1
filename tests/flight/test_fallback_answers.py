"""A failed call may have something stand in for its answer: marked, shared, never stored."""

from __future__ import annotations

import pytest

from flightsvc.errors import CallFailed, FallbackAnswer, ProviderUnavailable
from flightsvc.flight import FlightContext, FlightKey, SingleFlight
from flightsvc.settings import Settings
from tests.flight.conftest import Worker
from tests.flight.flying import Model, ask, await_following

KEY = FlightKey("scoring", "s1", "an answer")


def stand_in(retry_after_s: float | None = None) -> FallbackAnswer:
    failure = ProviderUnavailable(retry_after_s=retry_after_s)
    return FallbackAnswer({"text": "later"}, action="template", failure=failure)


def test_who_waited_gets_it_marked_on_every_worker(worker: Worker) -> None:
    one, two = worker(), worker()
    model = Model(held=True, error=stand_in())
    callers = ask(one, KEY, model, 3)
    model.began.wait()
    callers += ask(two, KEY, model, 3)
    await_following(two)
    model.let_go()
    results = [caller.result() for caller in callers]
    assert {result.fallback for result in results} == {"template"}
    assert all(result.value == {"text": "later"} for result in results)
    assert {result.role for result in results} == {"owner", "follower"}
    # and it is not an answer: the next caller calls again
    again = two.run(KEY, lambda ctx: "the model's own")
    assert (again.value, again.fallback, again.role) == ("the model's own", None, "owner")
    assert model.calls == 1


def test_it_is_remembered_as_the_failure_that_it_is(worker: Worker) -> None:
    one = worker()
    model = Model(error=stand_in(retry_after_s=30))
    assert one.run(KEY, model).fallback == "template"
    view = one.inspect(KEY.flight_id)
    assert view is not None
    assert (view.state.value, view.error_code) == ("FAILED", "PROVIDER_UNAVAILABLE")


def test_who_looks_later_finds_what_was_told(worker: Worker) -> None:
    one, two = worker(), worker()
    one.run(KEY, Model(error=stand_in()))
    for each in (one, two):
        view = each.inspect(KEY.flight_id)
        assert view is not None
        found = each.stand_in(view)
        assert found is not None
        assert (found.value, found.fallback) == ({"text": "later"}, "template")
        assert found.role == "replay"
        assert (found.flight_id, found.fence) == (KEY.flight_id, view.fence)
    with pytest.raises(CallFailed):
        two.run(KEY, Model(error=ProviderUnavailable()))
    view = one.inspect(KEY.flight_id)
    assert view is not None
    assert one.stand_in(view) is None  # that was told in an earlier ownership


def test_a_stand_in_that_cannot_be_stored_is_a_failure(worker: Worker) -> None:
    one = worker()

    def call(ctx: FlightContext) -> None:
        raise FallbackAnswer({1, 2}, action="template", failure=ProviderUnavailable())

    with pytest.raises(Exception, match="RESULT_NOT_SERIALIZABLE"):
        one.run(KEY, call)


def test_without_redis_too() -> None:
    one = SingleFlight(Settings(mode="local"))
    model = Model(error=stand_in())
    assert one.run(KEY, model).fallback == "template"
    assert one.run(KEY, Model()).fallback is None
    one.close()
