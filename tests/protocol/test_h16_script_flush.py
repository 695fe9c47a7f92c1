"""H16: the server forgets its scripts between any two steps, and nothing fails."""

from __future__ import annotations

from hashlib import sha1

import gevent
import pytest

from flightsvc.flight import FlightContext, FlightKey, verbs
from flightsvc.store import Verb
from tests.flight.conftest import Worker
from tests.protocol.desk import Desk
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1", "3", "an answer")


def _flushed(desk: Desk, verb: Verb, **given: str | int) -> str:
    """Run a script that the server has just forgotten.

    :returns: the first word of its reply.
    """
    desk.client.script_flush()
    assert desk.client.info("memory")["number_of_cached_scripts"] == 0
    return str(desk.run(verb, **given)[0])


def test_h16_every_script_comes_back_by_itself(own_desk: Desk) -> None:
    desk = own_desk
    assert _flushed(desk, verbs.ACQUIRE) == "OWNER_NEW"
    fence = desk.meta()["fence"]
    assert _flushed(desk, verbs.ACQUIRE, token="b", worker="w2") == "FOLLOWER_WAIT"
    assert _flushed(desk, verbs.WAKE, worker="w2").endswith("-0")
    assert _flushed(desk, verbs.MARK_RUNNING, fence=fence) == "OK"
    desk.client.script_flush()
    assert desk.beat((desk.flight_id, "a", fence)) == ["OK", 1]
    assert _flushed(desk, verbs.APPEND, fence=fence) == "OK"
    assert _flushed(desk, verbs.INSPECT).isdecimal()
    assert _flushed(desk, verbs.ABANDON, fence=fence) == "JOINED"
    assert _flushed(desk, verbs.FINISH, fence=fence) == "OK"
    assert _flushed(desk, verbs.ACQUIRE, token="b") == "REPLAY_SUCCESS"
    hashed = sha1(b"answer").hexdigest()
    assert _flushed(desk, verbs.DISCARD, fence=fence, sha1=hashed) == "OK"
    assert _flushed(desk, verbs.ACQUIRE, token="b") == "OWNER_TAKEOVER"
    assert _flushed(desk, verbs.RELEASE, token="b", fence=desk.meta()["fence"]) == "OK"
    assert _flushed(desk, verbs.ACQUIRE, token="c") == "OWNER_TAKEOVER"
    assert _flushed(desk, verbs.FAIL, token="c", fence=desk.meta()["fence"]) == "OK"


def test_h16_a_flight_over_two_workers_notices_nothing(
    worker: Worker, own_redis: RedisServer
) -> None:
    # given two workers, and a server that forgets its scripts before and inside the call
    one, two = worker(own_redis.url), worker(own_redis.url)
    client, calls = own_redis.client(), []

    def call(ctx: FlightContext) -> str:
        calls.append(ctx.fence)
        client.script_flush()
        gevent.sleep(0.1)
        client.script_flush()
        return "x"

    # when many ask, then there is one call, and one answer for all
    flying = [gevent.spawn((one, two)[n % 2].run, KEY, call) for n in range(20)]
    gevent.joinall(flying, raise_error=True)
    results = [greenlet.value for greenlet in flying]
    assert {result.fence for result in results if result} == set(calls)
    assert len(calls) == 1
    assert "local" not in {result.role for result in results if result}


@pytest.mark.parametrize("commands", [1, 4])
def test_h16_also_between_loading_a_script_and_running_it(
    worker: Worker, own_redis: RedisServer, commands: int
) -> None:
    # given a server that forgets its scripts all the time
    client, over = own_redis.client(), gevent.event.Event()

    def forget() -> None:
        while not over.is_set():
            client.script_flush()

    forgetting = gevent.spawn(forget)

    # when flights are flown meanwhile
    one = worker(own_redis.url, redis_connections=commands)
    flying = [
        gevent.spawn(one.run, FlightKey("scoring", number), lambda ctx: 1) for number in range(50)
    ]
    gevent.joinall(flying, raise_error=True)
    over.set()
    forgetting.join()

    # then every one of them was coordinated
    roles = {result.role for result in (greenlet.value for greenlet in flying) if result}
    assert roles == {"owner"}
