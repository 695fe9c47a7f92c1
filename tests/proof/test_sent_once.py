"""The client library sends nothing twice: whether to ask again is for the protocol to say."""

from __future__ import annotations

import pytest

from tests.faults.incident import Harm
from tests.faults.proxy import Proxy
from tests.faults.resp import script
from tests.flight.conftest import Worker
from tests.flight.flying import Model
from tests.proof.steps import KEY

#: no heartbeat comes while these tests last
QUIET = {"heartbeat_ms": 30_000, "takeover_detect_ms": 60_000, "redis_timeout_ms": 100}


@pytest.mark.parametrize("harm", [Harm.HOLD, Harm.SWALLOW, Harm.HOLD_REPLY, Harm.SWALLOW_REPLY])
def test_an_acquire_that_is_not_answered_is_sent_once(
    worker: Worker, line: Proxy, harm: Harm
) -> None:
    acquire = line.plan(harm, script("acquire"), times=None)

    result = worker(line.url, **QUIET).run(KEY, Model())

    assert (result.role, acquire.count) == ("local", 1)


def test_an_acquire_on_a_broken_line_is_sent_once_more(worker: Worker, line: Proxy) -> None:
    acquire = line.plan(Harm.RESET_REPLY, script("acquire"), times=None)

    result = worker(line.url, **QUIET).run(KEY, Model())

    assert (result.role, acquire.count) == ("local", 2)


@pytest.mark.parametrize("harm", [Harm.RESET_REPLY, Harm.SWALLOW_REPLY, Harm.RESET, Harm.SWALLOW])
def test_an_end_that_is_not_answered_is_sent_once_before_the_callers_have_it(
    worker: Worker, line: Proxy, harm: Harm
) -> None:
    finish = line.plan(harm, script("finish"), times=None)

    result = worker(line.url, **QUIET).run(KEY, Model())

    assert (result.role, finish.count) == ("owner", 1)
