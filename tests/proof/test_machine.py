"""The real scripts and a model of them in lockstep: any order of anything that can happen.

Everything is drawn: who asks, who writes, with whose token and fence, when, what is lost, what is
sent twice. After every step the answers and all that Redis holds must be the model's, every key
must have its TTL, and the invariants must hold. When something is found, the shortest way there is
printed, with the seed.
"""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test as run_machine

from flightsvc.store import scripts
from tests.proof.clocked import clocked
from tests.proof.effort import SHRINK, first_seed, rounds
from tests.proof.machine import Machine
from tests.support.redis_server import RedisServer

#: runs in one search; a longer one is cut into searches with seeds of their own
SEARCH = 250
STEPS = 40


def test_the_scripts_do_what_the_model_does(own_redis: RedisServer) -> None:
    first, left = first_seed(), rounds(150)
    for number in range(first, first + -(-left // SEARCH)):
        print(f"PROOF_SEED={number}")
        _search(own_redis, number, min(left, SEARCH))
        left -= SEARCH


def _search(server: RedisServer, number: int, runs: int) -> None:
    shape = settings(
        max_examples=runs,
        stateful_step_count=STEPS,
        deadline=None,
        # also where Hypothesis knows that it runs in CI: the seed decides
        derandomize=False,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink] if SHRINK else [Phase.generate],
    )

    def machine() -> Machine:
        return Machine(server)

    run_machine(cast(Any, seed(number)(machine)), settings=shape)


@pytest.mark.parametrize("name", ["acquire", "beat", "fail", "abandon", "mark_running", "inspect"])
def test_the_scripts_take_the_time_through_one_function(name: str) -> None:
    # the copies with the other clock differ from the scripts in this one place
    ours, real = clocked(name), scripts.source(name).decode()

    different = [
        pair for pair in zip(ours.split("\n"), real.split("\n"), strict=True) if len(set(pair)) > 1
    ]
    assert [line.strip() for _, line in different] == ["local t = redis.call('TIME')"]
