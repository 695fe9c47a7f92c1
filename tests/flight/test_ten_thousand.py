"""Ten thousand callers of one question on two processes: one call, no error, few connections."""

from __future__ import annotations

import time
from collections import Counter

from tests.flight.processes.handle import Child
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

CALLERS = 5_000  # a process
ANSWER = {"score": 80, "feedback": "很好", "missing_points": ["one", "two"]}


def named_clients(server: RedisServer) -> Counter[str]:
    """Open connections by the name that each worker gives its own."""
    return Counter(client["name"] for client in server.client().client_list())


def test_ten_thousand_callers_on_two_processes_make_one_call(
    own_redis: RedisServer, namespace: str
) -> None:
    with (
        Child(f"{own_redis.url}?client_name=one", namespace) as one,
        Child(f"{own_redis.url}?client_name=two", namespace) as two,
    ):
        # when all ask at the same moment, each process knowing nothing of the other
        at = time.monotonic() + 1.0
        for child in (one, two):
            child.run("q", callers=CALLERS, model_s=1.0, value=ANSWER, at=at)
        most: Counter[str] = Counter()

        def done() -> bool:
            nonlocal most
            most |= named_clients(own_redis)
            return all(child.all_heard("done") for child in (one, two))

        wait_until(done, 60)
        answers = [child.heard("done") for child in (one, two)]
        # then there is one call
        assert len(one.all_heard("began") + two.all_heard("began")) == 1
        # nobody has an error, all have the same answer, and one of them made the call
        assert [answer["errors"] for answer in answers] == [{}, {}]
        assert [answer["values"] for answer in answers] == [[ANSWER], [ANSWER]]
        roles = sum((Counter(answer["roles"]) for answer in answers), Counter[str]())
        assert roles == {"owner": 1, "follower": 2 * CALLERS - 1}
        # through a few connections a process, one for each command at a time and one that reads
        assert set(most) >= {"one", "two"}
        assert max(most["one"], most["two"]) <= 6
        # and the process that owned asked Redis once, the other to join and to fetch
        asked = [child.counts()["redis.time.acquire"] for child in (one, two)]
        assert sorted(asked) == [1, 2]
