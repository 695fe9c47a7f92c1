"""Pausing, flags and roll-backs, as Redis keeps them."""

from __future__ import annotations

import time

import pytest

from flightsvc.errors import InvalidInput, NotFound
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store import StoreError
from flightsvc.store.modules import Flag, Modules, moment
from flightsvc.store.shared import SharedState
from tests.protocol.conftest import program, redis_server
from tests.shared.conftest import Workers
from tests.support.redis_server import RedisServer

__all__ = ["program", "redis_server"]

STAGE, PROVIDER, CODE = "stage:evaluation", "provider:openai", "AI_INFRA_TIMEOUT"


@pytest.fixture
def shared(workers: Workers) -> SharedState:
    return workers()


def fail(shared: SharedState, times: int, code: str = CODE, module: str = STAGE) -> None:
    for _ in range(times):
        shared.counters.failed(module, code)
    shared.counters.send()


def test_a_pause_says_who_when_and_why(shared: SharedState, redis_server: RedisServer) -> None:
    began_s, _ = redis_server.client().time()

    given = shared.switches.pause("evaluation", by=" anna ", reason="the model talks nonsense 模型")

    stands = shared.switches.snapshot().paused[STAGE]
    assert stands == given
    assert (stands.by, stands.reason) == ("anna", "the model talks nonsense 模型")
    assert not stands.automatic
    assert 0 <= stands.at_ms - int(began_s) * 1000 < 60_000


def test_a_second_pause_replaces_the_first_and_a_resume_ends_both(shared: SharedState) -> None:
    shared.switches.pause(STAGE, by="anna", reason="one")
    shared.switches.pause(STAGE, by="bert", reason="two")
    shared.switches.pause(PROVIDER, by="bert", reason="three")
    assert shared.switches.snapshot().paused[STAGE].by == "bert"

    assert shared.switches.resume(STAGE, by="carl")
    assert list(shared.switches.snapshot().paused) == [PROVIDER]
    assert not shared.switches.resume(STAGE, by="carl")


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("stage:evaluation", STAGE),
        (" Evaluation ", STAGE),
        ("follow-up", "stage:follow_up"),
        ("openai", PROVIDER),
        ("provider:openai", PROVIDER),
    ],
)
def test_a_module_has_a_full_and_a_short_name(name: str, full: str) -> None:
    assert Modules.of(Settings()).resolve(name) == full


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("evaluaton", "did you mean stage:evaluation?"),
        ("stage:evalution", "did you mean stage:evaluation?"),
        ("opanai", "did you mean provider:openai?"),
        ("provider:evaluation", "provider"),
        ("xyz", "known: stage:chat, "),
        ("default", "known: "),
        ("", "known: "),
        ("scoring", "stage:scoring or provider:scoring"),
        ("x" * 100_000, "known: "),
    ],
)
def test_an_unknown_module_is_refused_with_a_hint(name: str, says: str) -> None:
    known = Modules(("chat", "evaluation", "scoring"), ("openai", "scoring"))

    with pytest.raises(NotFound) as refused:
        known.resolve(name)
    assert says in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "\x1b[2J", "x" * 501])
def test_a_reason_is_one_printable_line(shared: SharedState, reason: str) -> None:
    with pytest.raises(InvalidInput, match="reason"):
        shared.switches.pause(STAGE, by="anna", reason=reason)
    with pytest.raises(InvalidInput, match="by"):
        shared.switches.pause(STAGE, by=reason, reason="good")
    assert shared.switches.snapshot().paused == {}


def test_a_roll_back_stays_as_it_was_first_decided(shared: SharedState) -> None:
    first = shared.switches.roll_back("evaluation", by="checklist", reason="drift", code="AI_DRIFT")
    again = shared.switches.roll_back("evaluation", by="anna", reason="me too")

    assert again == first
    assert shared.switches.snapshot().rolled_back == {STAGE: first}
    shared.switches.resume(STAGE, by="anna")  # of a pause; the roll-back is another decision
    assert shared.switches.snapshot().rolled_back == {STAGE: first}
    assert shared.switches.restore(STAGE, by="anna")
    assert not shared.switches.restore(STAGE, by="anna")
    assert shared.switches.snapshot().rolled_back == {}


def test_a_provider_has_no_former_model(shared: SharedState) -> None:
    with pytest.raises(NotFound, match="only a stage"):
        shared.switches.roll_back("openai", by="anna", reason="x")


def test_a_flag_is_raised_once_and_only_while_the_failures_last(workers: Workers) -> None:
    first, second = workers(), workers()
    fail(first, 3)

    assert not first.switches.need_person(STAGE, CODE, 4)
    assert first.switches.need_person(STAGE, CODE, 3)
    assert not second.switches.need_person(STAGE, CODE, 3)
    flag = second.switches.snapshot().flags[STAGE]
    assert flag == Flag(STAGE, CODE, 3, flag.at_ms)
    assert first.switches.snapshot().paused == {}

    second.counters.succeeded(STAGE)
    second.counters.send()
    second.switches.ack(STAGE, by="anna")
    assert not first.switches.need_person(STAGE, CODE, 3)


def test_a_flag_can_pause_but_leaves_a_person_s_pause_as_it_is(shared: SharedState) -> None:
    fail(shared, 2)
    fail(shared, 2, module=PROVIDER)
    shared.switches.pause(PROVIDER, by="anna", reason="by hand")

    shared.switches.need_person(STAGE, CODE, 2, pause=True)
    shared.switches.need_person(PROVIDER, CODE, 2, pause=True)

    paused = shared.switches.snapshot().paused
    assert (paused[STAGE].by, paused[STAGE].automatic) == ("checklist", True)
    assert paused[STAGE].reason == f"2 failures in a row: {CODE}"
    assert (paused[PROVIDER].by, paused[PROVIDER].reason) == ("anna", "by hand")


@pytest.mark.parametrize("how", ["ack", "resume"])
def test_a_person_lowers_the_flag_and_the_failures_start_anew(
    shared: SharedState, how: str
) -> None:
    fail(shared, 2)
    fail(shared, 2, module="stage:evaluation_2")  # another name that begins alike
    shared.switches.need_person(STAGE, CODE, 2, pause=True)

    assert getattr(shared.switches, how)(STAGE, by="anna")

    stands = shared.switches.snapshot()
    assert stands.flags == {}
    assert (STAGE in stands.paused) == (how == "ack")
    assert stands.streaks == {("stage:evaluation_2", CODE): 2}
    assert not shared.switches.need_person(STAGE, CODE, 2)


def test_an_unreadable_record_pauses_all_the_same(
    shared: SharedState, redis_server: RedisServer, namespace: str
) -> None:
    key = f"{{{namespace}}}:switches"
    for value in (b"", b"x", b"12 [1]", b"12 {", b"x {}"):
        redis_server.client().hset(key, f"paused {STAGE}", value)
        assert STAGE in shared.switches.snapshot().paused
    redis_server.client().hset(key, f"paused {STAGE}", b'1000 {"by": "x", "new": 1}')
    assert shared.switches.snapshot().paused[STAGE].by == "x"


def test_what_is_described_is_json_values(shared: SharedState) -> None:
    fail(shared, 1)
    shared.switches.need_person(STAGE, CODE, 1, pause=True)
    back = shared.switches.roll_back(STAGE, by="anna", reason="drift")

    told = shared.switches.snapshot().describe(STAGE)

    assert told["name"] == STAGE
    assert told["paused"]["automatic"] is True
    assert told["needs_person"]["failures"] == 1
    assert told["rolled_back"] == {
        "by": "anna",
        "reason": "drift",
        "code": "",
        "since": moment(back.at_ms),
    }
    assert shared.switches.snapshot().describe(PROVIDER) == {
        "name": PROVIDER,
        "paused": None,
        "needs_person": None,
        "rolled_back": None,
    }
    assert moment(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"


def test_h18_only_the_switches_have_no_ttl(
    shared: SharedState, redis_server: RedisServer, namespace: str
) -> None:
    # given everything that there is
    fail(shared, 2)
    shared.switches.need_person(STAGE, CODE, 2, pause=True)
    shared.switches.roll_back(STAGE, by="anna", reason="drift")
    shared.hints.opened(("openai", "gpt"), 30)
    shared.probes.take(("openai", "gpt"), 10)
    shared.counters.count("x", 60)
    shared.counters.claim_once("alert", 60)
    client, until = redis_server.client(), time.monotonic() + 5

    def keys() -> set[bytes]:
        return set(client.scan_iter(match=f"{{{namespace}}}*", count=1_000))

    while len(keys()) < 6 and time.monotonic() < until:
        time.sleep(0.02)

    # then all but one end by themselves
    tag = f"{{{namespace}}}:".encode()
    lasting = {key for key in keys() if client.pttl(key) == -1}
    assert keys() == {
        tag + name
        for name in (
            b"switches",
            b"streaks",
            b"hints",
            b"probe:openai/gpt",
            b"count:60000:x",
            b"claim:alert",
        )
    }
    assert lasting == {tag + b"switches"}

    # and that one goes when the last decision is taken back
    shared.switches.resume(STAGE, by="anna")
    shared.switches.restore(STAGE, by="anna")
    assert tag + b"switches" not in keys()


def test_in_mode_local_nothing_can_be_paused() -> None:
    shared = SharedState(Settings(mode="local"), Metrics.off(), None)
    shared.start()

    with pytest.raises(StoreError, match="mode is local"):
        shared.switches.pause(STAGE, by="anna", reason="x")
    assert shared.watch.paused("evaluation", "openai") is None
    assert shared.probes.take(("openai", "gpt"), 1.0)
    shared.counters.count("x", 60, 3)
    assert shared.counters.total("x", 60) == 3
    assert [shared.counters.claim_once("a", 60) for _ in range(2)] == [True, False]
    shared.close()
