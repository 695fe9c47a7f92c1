"""What a process must be for flights: patched by gevent, and one thread that gevent knows."""

from __future__ import annotations

import gevent
import pytest

from flightsvc.flight import FlightKey
from tests.flight.conftest import Worker
from tests.flight.flying import Caller, Model
from tests.processes import run_python
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1")


def test_a_process_that_gevent_has_not_patched_is_refused_with_the_fix() -> None:
    process = run_python(
        "from flightsvc import SingleFlight\n"
        "try: SingleFlight.from_url('redis://127.0.0.1:1')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    said, _ = process.communicate(timeout=30)
    assert said.startswith("SettingsError gevent has not patched this process")
    assert "monkey.patch_all()" in said


def test_a_thread_that_gevent_does_not_know_is_told_so(worker: Worker) -> None:
    one = worker()
    pool = gevent.get_hub().threadpool
    with pytest.raises(RuntimeError, match="in a thread that gevent does not know"):
        pool.apply(one.run, (KEY, Model()))
    assert one.run(KEY, Model()).role == "owner"


def test_a_worker_that_stops_does_not_wait_for_a_redis_that_is_gone(
    worker: Worker, own_redis: RedisServer
) -> None:
    one = worker(url=own_redis.url)
    model = Model(held=True)
    caller = Caller(one, KEY, model)
    model.began.wait()
    own_redis.kill()
    model.let_go()
    assert caller.result().value == {"call": 1}
    # its own caller is answered; what is left to tell has nobody to be told to
    with gevent.Timeout(5):
        one.close(grace_s=60)
