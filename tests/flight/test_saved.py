"""What sharing saves is counted: calls, and their price."""

from __future__ import annotations

from typing import Any

from flightsvc.errors import FallbackAnswer, ProviderUnavailable
from flightsvc.flight import FlightKey, SingleFlight
from flightsvc.settings import Settings
from tests.flight.conftest import Worker
from tests.flight.flying import Model, ask, await_following

KEY = FlightKey("scoring", "s1", "an answer")
PRICED: dict[str, Any] = {
    "custom_stages": ["scoring"],
    "stages": {"scoring": {"call_price": 0.0125}},
}


def test_followers_replays_and_memory_save_a_call_each_the_owner_does_not(worker: Worker) -> None:
    one, two, three = worker(**PRICED), worker(**PRICED), worker(**PRICED)
    model = Model(held=True)
    callers = ask(one, KEY, model, 3)  # an owner, two followers
    model.began.wait()
    callers += ask(two, KEY, model, 2)  # two followers
    await_following(two)
    model.let_go()
    for caller in callers:
        caller.result()
    assert three.run(KEY, model).role == "replay"
    assert three.run(KEY, model).role == "l1"
    told = [flights.metrics.snapshot() for flights in (one, two, three)]
    assert [each["flight.saved.scoring"] for each in told] == [2, 2, 2]
    assert [each["flight.saved_money.scoring"] for each in told] == [25_000] * 3
    assert sum(each.get("flight.calls.scoring", 0) for each in told) == model.calls == 1


def test_a_stand_in_saves_nothing_and_is_counted_by_its_action(worker: Worker) -> None:
    flights = worker(**PRICED)
    failure = ProviderUnavailable()
    model = Model(held=True, error=FallbackAnswer({}, action="template", failure=failure))
    callers = ask(flights, KEY, model, 3)
    model.began.wait()
    model.let_go()
    assert [caller.result().fallback for caller in callers] == ["template"] * 3
    told = flights.metrics.snapshot()
    assert told["flight.saved.scoring"] == told["flight.saved_money.scoring"] == 0
    assert told["flight.stand_ins.scoring.template"] == 3


def test_without_redis_nothing_is_said_to_be_saved() -> None:
    flights = SingleFlight(Settings.checked(mode="local", **PRICED))
    model = Model(held=True)
    callers = ask(flights, KEY, model, 3)
    model.began.wait()
    model.let_go()
    assert {caller.result().role for caller in callers} == {"local"}
    assert flights.metrics.snapshot()["flight.saved.scoring"] == 0
    flights.close()


def test_the_memory_of_replays_is_a_gauge(worker: Worker) -> None:
    flights = worker()
    before = flights.metrics.snapshot()["flight.replay_bytes"]
    flights.run(KEY, lambda ctx: "x" * 5_000)
    assert flights.metrics.snapshot()["flight.replay_bytes"] >= before + 5_000
