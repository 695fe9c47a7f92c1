"""Faults that somebody could make, each in one place, and the tests that must notice.

The tests of a mutant are as few as do; other tests may fail too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """One fault.

    :param path: the file that has it.
    :param right: what stands there, once.
    :param wrong: what stands there instead.
    :param tests: at least one of these must fail, as paths below ``tests/``.
    """

    path: str
    right: str
    wrong: str
    tests: tuple[str, ...]

    def apply(self, root: Path) -> None:
        """Put the fault into a copy of the tree."""
        path = root / self.path
        text = path.read_text()
        assert text.count(self.right) == 1, f"{self.path} does not hold once: {self.right}"
        path.write_text(text.replace(self.right, self.wrong))


def lua(script: str, right: str, wrong: str, *tests: str) -> Mutant:
    """A fault in a script."""
    return Mutant(f"lua/{script}.lua", right, wrong, tuple(f"protocol/{test}" for test in tests))


def code(path: str, right: str, wrong: str, *tests: str) -> Mutant:
    """A fault in the package."""
    return Mutant(f"flightsvc/{path}.py", right, wrong, tests)


IS_OWNER = "if m[2] ~= ARGV[2] or m[3] ~= ARGV[3] then"
H12 = "test_h12_not_the_owner.py"
WRITES_OF_OTHERS = f"{H12}::test_h12_writes_of_others_are_refused"
STREAM = "flight/test_stream_sharing.py"
SENT_TWICE = "test_writes.py::test_a_write_sent_twice_changes_nothing_twice"
#: the random searches
MODEL = "proof/test_machine.py::test_the_scripts_do_what_the_model_does"
FAULTS = "proof/test_history.py::test_under_random_faults_the_invariants_hold"
INTERLEAVINGS = "proof/test_interleavings.py"
LIVE_LEASES = "proof/test_live_leases.py"
H03 = "flight/test_h01_h03_waiting.py"

MUTANTS: dict[str, Mutant] = {
    # -- fencing ---------------------------------------------------------------------------
    "finish without the fence compare": lua(
        "finish", IS_OWNER, "if m[2] ~= ARGV[2] then", WRITES_OF_OTHERS
    ),
    "finish without the owner compare": lua(
        "finish", IS_OWNER, "if m[3] ~= ARGV[3] then", WRITES_OF_OTHERS
    ),
    "a heartbeat without the fence compare": lua(
        "beat",
        "if not flying or m[2] ~= token or m[3] ~= fence then",
        "if not flying or m[2] ~= token then",
        f"{H12}::test_h12_heartbeats_of_others_renew_nothing",
    ),
    "a fence that does not look at the clock": lua(
        "acquire",
        "math.max(last + 1, us, tonumber(ARGV[11]) + 1)",
        "math.max(last + 1, tonumber(ARGV[11]) + 1)",
        "test_fences.py::test_fences_rise_over_lost_data_by_the_clock",
    ),
    "a fence that does not look at what the asker saw": lua(
        "acquire",
        "math.max(last + 1, us, tonumber(ARGV[11]) + 1)",
        "math.max(last + 1, us)",
        "test_fences.py::test_fences_rise_over_lost_data_and_a_clock_set_back",
    ),
    "one token for all flights of a worker": code(
        "flight/local",
        "self.token = uuid.uuid4().hex",
        "self.token = 'the same'",
        "flight/test_run.py::test_many_callers_of_two_workers_make_one_call",
    ),
    # -- TTLs ------------------------------------------------------------------------------
    "an answer without a TTL": lua(
        "finish",
        "redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[8])",
        "redis.call('SET', KEYS[2], ARGV[4])",
        "test_writes.py::test_finish_stores_answer_state_and_event_at_once",
    ),
    "a new flight without a TTL": lua(
        "acquire",
        "redis.call('PEXPIRE', KEYS[1], live_ttl)\n  redis.call('ZADD'",
        "redis.call('ZADD'",
        "test_acquire.py::test_row_11_no_flight_makes_an_owner",
    ),
    # -- what acquire decides --------------------------------------------------------------
    "an owner that does not know its own token": lua(
        "acquire",
        "if flying and owner == token then",
        "if false then",
        "test_acquire.py::test_row_02_the_owners_own_token_is_the_owner_again",
    ),
    "a waited fence that counts for nothing": lua(
        "acquire",
        "local unread = waited > 0 and tonumber(fence) >= waited",
        "local unread = false",
        "test_acquire.py::test_row_06_who_waited_for_a_failure_never_calls_again",
    ),
    "a heartbeat from the future that is fresh": lua(
        "acquire",
        "math.abs(age) <= detect",
        "age <= detect",
        "test_takeover.py::test_a_heartbeat_from_the_far_future_is_old",
    ),
    "silent owners that are not counted": lua(
        "acquire",
        "if silent >= tonumber(ARGV[16]) then return give_up() end",
        "",
        "test_takeover.py::test_after_three_takeovers_of_silent_owners_the_flight_fails",
    ),
    "a release that counts as an attempt": lua(
        "release",
        "redis.call('HINCRBY', KEYS[1], 'ownerships', -1)",
        "",
        "test_takeover.py::test_a_released_flight_is_not_counted_as_an_attempt",
    ),
    "an abandon that sees no follower": lua(
        "abandon",
        "if tonumber(lease) > ms then return {'JOINED'} end",
        "",
        "test_writes.py::test_abandon_is_refused_while_a_follower_holds_a_lease",
    ),
    "a leave that takes the other workers along": lua(
        "leave",
        "redis.call('HDEL', KEYS[1], ARGV[1])",
        "redis.call('DEL', KEYS[1])",
        "test_writes.py::test_who_leaves_gives_up_its_own_lease_and_no_other",
    ),
    # -- what is sent twice ----------------------------------------------------------------
    "chunks that are added again": lua(
        "append", "for i = 5 + expected - first, #ARGV do", "for i = 5, #ARGV do", SENT_TWICE
    ),
    "an answer that is refused the second time": lua(
        "finish",
        "if m[1] == 'SUCCEEDED' and m[4] == ARGV[7] then return {'OK'} end",
        "",
        SENT_TWICE,
    ),
    "a client library that sends writes again": code(
        "store/server",
        "Retry(NoBackoff(), 0)",
        "Retry(NoBackoff(), 1)",
        "proof/test_sent_once.py::test_an_acquire_that_is_not_answered_is_sent_once",
    ),
    # -- waiting ---------------------------------------------------------------------------
    "a waiter that looks first and registers later": code(
        "flight/waiting",
        "        waiter: Waiter[Any] = Waiter()\n",
        "        waiter: Waiter[Any] = Waiter()\n        get_hub().loop.run_callback("
        "waiter.switch)\n        waiter.get()\n        waiter = Waiter()\n",
        f"{H03}::test_h03_no_end_is_missed_however_close_it_is_to_the_join",
    ),
    "a reader that reads from now on ($)": code(
        "store/base",
        "streams: dict[Any, Any] = dict(cursors)",
        "streams: dict[Any, Any] = dict.fromkeys(cursors, '$')",
        f"{H03}::test_h03_the_owner_ends_between_a_followers_join_and_its_first_read",
    ),
    "a follower that forgets what it waited for": code(
        "flight/distributed",
        "self._follower.follow(flight, outcome)\n            return end or replace(ask, "
        "waited_fence=outcome.fence)",
        "self._follower.follow(flight, outcome)\n            return end or ask",
        f"{INTERLEAVINGS}::test_an_unread_failure_is_told_at_the_next_question_and_not_called_again",
    ),
    # -- chunks ----------------------------------------------------------------------------
    "an end that is told before its chunks": code(
        "flight/owner",
        "ack = self._told_chunks(run)",
        "ack = Ack.OK",
        f"{STREAM}::test_all_chunks_are_told_before_the_end",
    ),
    "a restart that nobody hears of": code(
        "flight/buffer",
        "self._at <= kept",
        "True",
        "flight/test_stream_buffer.py::test_who_was_past_the_place_begins_again",
    ),
    "an owner that asks only once whether it may stop": code(
        "flight/heartbeat",
        "item.tell(Signal.UNWANTED)",
        "pass",
        "flight/test_stream_leaving.py::test_the_lease_of_a_killed_follower_ends_by_itself",
    ),
    "a worker that keeps its lease when it leaves": code(
        "flight/distributed",
        "self.coordinator.leave(flight.key)",
        "pass",
        "flight/test_stream_leaving.py::"
        "test_the_call_stops_when_all_callers_of_all_workers_have_left",
    ),
    "a flight that is deleted under somebody who has just come": code(
        "flight/owner",
        "if ack is Ack.OK and run.flight.unwanted:",
        "if ack is Ack.OK:",
        "flight/test_stream_leaving.py::"
        "test_who_comes_while_the_call_is_being_stopped_is_not_cut_off",
    ),
    # -- owners that lost their flight -----------------------------------------------------
    "a lost flight that the owner does not hear of": code(
        "flight/heartbeat",
        "item.tell(Signal.LOST if ack is Ack.LOST else Signal.STALE)",
        "pass",
        "flight/test_h05_lost_events.py::test_h14_the_state_vanishes_and_the_owner_regains_its_flight",
    ),
    "an owner that answers though its end was refused": code(
        "flight/owner",
        'if ack is Ack.OK:\n                return self._ended(own, landed, "stored")',
        'if ack is not Ack.LOST:\n                return self._ended(own, landed, "stored")',
        f"{INTERLEAVINGS}::test_an_owner_whose_end_is_refused_publishes_nothing",
    ),
    "a failure that is called again when its flight was lost": code(
        "flight/owner",
        'return self._ended(own, end, "failed")\n'
        "            if ack is not Ack.LOST or not self._regain(run, own):",
        'return self._ended(own, end, "failed")\n            if True:',
        f"{INTERLEAVINGS}::test_a_call_that_failed_while_its_flight_was_lost_is_not_repeated",
    ),
    # -- Redis that does not answer --------------------------------------------------------
    "heartbeats that stop where acquires fail": code(
        "flight/heartbeat",
        "                self.beat_all()\n",
        "                if self._health.up:\n                    self.beat_all()\n",
        f"{LIVE_LEASES}::test_a_breaker_that_opens_over_live_leases_costs_no_owner_its_flight",
    ),
    "acquires without a reply that nobody settles": code(
        "flight/distributed",
        "self._orphans.add(flight, ask)",
        "pass",
        "flight/test_redis_frozen.py::test_h15_a_call_that_ended_before_redis_goes_on_is_stored",
    ),
}

#: what only random faults among real workers can show without being told where to look
UNFENCED = Mutant("lua/finish.lua", f"{IS_OWNER} return {{'STALE'}} end", "", (FAULTS,))
