"""The scripts on a real server and the model, step by step: answers and everything held must agree.

Redis counts TTLs by its own clock. So after each step every TTL is noted, and then set to what the
model says is left of it, and a long time more: nothing expires by itself, and a TTL that the next
step sets can be told from one that it leaves alone. What has expired by the test's clock is
deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from flightsvc.flight import FlightKey
from flightsvc.flight.coordinator import (
    Conflict,
    FlightCoordinator,
    Following,
    Outcome,
    Ownership,
    Refused,
    Replayed,
)
from flightsvc.settings import Settings
from flightsvc.store import Names
from tests.proof.clocked import CLOCK, ClockedStore
from tests.proof.deciding import Told
from tests.proof.model import Model
from tests.proof.world import DEADLINE, DETECT, FAILURE_TTL, RESULT_TTL, Meta
from tests.support.redis_server import RedisServer

FLIGHTS = 2
#: codec and size of every stored answer
PACKED = ("none+raw", 6)
#: the time at the beginning, in microseconds
BEGIN = 1_700_000_000_000_000
#: no two steps share a microsecond, as with a real server
TICK = 100
#: what is added to every TTL between two steps, in ms
SLACK = 10**9
#: how much later than it is set a TTL may be read, besides the time that the step took, in ms
LATE = 50

LOOK = f"""
local answer, size = {{}}, redis.call('DBSIZE')
for i, key in ipairs(KEYS) do
  local kind, content = redis.call('TYPE', key).ok, false
  if kind == 'hash' then content = redis.call('HGETALL', key) end
  if kind == 'string' then content = redis.call('GET', key) end
  if kind == 'stream' then content = redis.call('XRANGE', key, '-', '+') end
  if kind == 'zset' then content = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
  answer[i] = {{redis.call('PTTL', key), content}}
  if ARGV[i] == '0' then redis.call('DEL', key)
  elseif ARGV[i] ~= '' then redis.call('PEXPIRE', key, ARGV[i]) end
end
answer[#KEYS + 1] = size
redis.call('HSET', '{CLOCK}', 's', ARGV[#KEYS + 1], 'us', ARGV[#KEYS + 2])
return answer
"""

SETTINGS: dict[str, Any] = {
    "namespace": "proof",
    "flight_shards": 1,
    "takeover_detect_ms": DETECT,
    "heartbeat_ms": 1_000,
    "stages": {
        "default": {
            "timeout_ms": 10_000,
            "budget_ms": DEADLINE - DETECT,
            "result_ttl_s": RESULT_TTL / 1000,
            "failure_ttl_s": FAILURE_TTL / 1000,
        }
    },
}


class Lockstep:
    """A namespace on an empty server, and the model of it."""

    def __init__(self, server: RedisServer) -> None:
        self.store = ClockedStore(server)
        self.model = Model(BEGIN, FLIGHTS)
        self._settings = Settings.checked(redis_url=server.url, **SETTINGS)
        self._names = Names("proof", 1)
        self._keys = self._key_names()
        self.flush()
        self._looked_at = time.monotonic()

    def key(self, flight: int, digest: str = "") -> FlightKey:
        """The key of a flight."""
        return FlightKey("scoring", flight, digest=digest)

    def worker(self, name: str) -> FlightCoordinator:
        """A worker that has just started."""
        return FlightCoordinator(self.store, self._names, self._settings, name)

    def flush(self) -> None:
        """Lose everything."""
        self.store.client.flushall()
        self.store.set_clock(self.model.us)

    def lose(self, key: str) -> None:
        """Lose one key, by its name in the model."""
        self.store.client.delete(self._keys[key])

    def trim(self, flight: int) -> None:
        """Lose what is in a stream."""
        self.store.client.xtrim(self._keys[f"events:{flight}"], maxlen=0, approximate=False)

    def step(self, real: Callable[[], Any], model: Callable[[], Any]) -> tuple[Any, Any]:
        """Do something on both sides, then compare everything that they hold.

        :returns: both answers; :meth:`agree` compares those to a question.
        """
        got, expected = real(), model()
        self.look(self.model.us + TICK)
        return got, expected

    def look(self, us: int) -> None:
        """Compare what both sides hold; then it is later.

        :param us: the time from now on, in microseconds.
        """
        looked_at = time.monotonic()
        overdue = self.model.overdue(us)
        args = [self._rearmed(key, us, overdue) for key in self._keys]
        reply = self.store.run_text(
            LOOK, list(self._keys.values()), [*args, us // 1_000_000, us % 1_000_000]
        )
        late = (time.monotonic() - self._looked_at) * 1000 + LATE
        found = {
            key: (ttl, content)
            for key, (ttl, content) in zip(self._keys, reply[:-1], strict=True)
            if ttl != -2
        }
        self._learn_ids(found)
        self._compare(found)
        self._compare_ttls(found, late)
        assert reply[-1] == len(found) + 1, "there is a key that nobody knows"
        self._looked_at = looked_at
        for key in overdue:
            self.model.drop(key)
        self.model.us = us

    def agree(self, flight: int, got: Outcome, told: Told) -> None:
        """The answer to a question is what the model says."""
        if not told.by_ttl:
            assert words(got) == expected_words(told)
            return
        assert isinstance(got, Refused)
        assert words(got)[:-1] == expected_words(told)[:-1]
        extra = 0 if f"meta:{flight}" in self._touched else SLACK
        late = told.wait + extra - got.failure.retry_after_ms
        assert 0 <= late <= self._late, (got, told)

    # -- looking -----------------------------------------------------------------------------

    def _rearmed(self, key: str, us: int, overdue: list[str]) -> str | int:
        if key in overdue:
            return 0
        expires = self.model.expires.get(key)
        return "" if expires is None else expires - us // 1000 + SLACK

    def _learn_ids(self, found: dict[str, tuple[int, Any]]) -> None:
        """Give the model's new events the ids that the server gave them."""
        for flight in self.model.flights:
            entries = found.get(f"events:{flight.name}", (0, []))[1]
            if flight.events is None or len(entries) != len(flight.events.events):
                continue
            for event, (entry, _) in zip(flight.events.events, entries, strict=True):
                event.id = event.id or entry.decode()

    def _compare(self, found: dict[str, tuple[int, Any]]) -> None:
        real = {key: _plain(key, content) for key, (_, content) in found.items()}
        assert real == {key: self._expected(key) for key in self.model.keys()}

    def _compare_ttls(self, found: dict[str, tuple[int, Any]], late: float) -> None:
        self._late, self._touched = late, dict(self.model.touched)
        self.model.touched.clear()
        for key, (ttl, _) in found.items():
            if key == "fence":
                assert ttl == -1
                continue
            left = self.model.expires[key] - self.model.ms
            armed = self._touched.get(key, left + SLACK)
            assert 0 <= armed - ttl <= late, f"{key} lives {ttl} ms, not {armed}"

    def _expected(self, key: str) -> Any:
        part, _, number = key.partition(":")
        if part == "fence":
            return self.model.fence
        if part == "live":
            ids = {flight.name: self.key(int(flight.name)).flight_id for flight in _all(self.model)}
            return {ids[name]: at for name, at in self.model.live.items()}
        flight = self.model.flights[int(number)]
        if part == "meta":
            assert flight.meta is not None
            return _meta(flight.meta)
        if part == "events":
            assert flight.events is not None
            return [(event.id, event.fields) for event in flight.events.events]
        return getattr(flight, part)

    def _key_names(self) -> dict[str, str]:
        keys = {}
        for number in range(FLIGHTS):
            names = self._names.flight(self.key(number).flight_id)
            for part in ("meta", "result", "events", "interest"):
                keys[f"{part}:{number}"] = names[part]
            keys |= {"live": names["live"], "fence": names["fence"]}
        return keys


def words(outcome: Outcome) -> tuple[Any, ...]:
    """An answer, flat."""
    if isinstance(outcome, Ownership):
        return outcome.action.value, outcome.fence, outcome.attempt
    if isinstance(outcome, Following):
        place = outcome.events_from, outcome.last_event
        return "FOLLOWER_WAIT", outcome.fence, *place, outcome.patience_ms
    if isinstance(outcome, Replayed):
        return "REPLAY_SUCCESS", outcome.fence, outcome.envelope
    if isinstance(outcome, Refused):
        f = outcome.failure
        said = f.error_type.value, f.code, f.retryable, f.status
        return "REPLAY_FAILURE", outcome.fence, *said, f.retry_after_ms
    return ("KEY_CONFLICT",) if isinstance(outcome, Conflict) else ("DECLINED",)


def expected_words(told: Told) -> tuple[Any, ...]:
    """The model's answer, in the same form."""
    if told.action.startswith("OWNER"):
        return told.action, told.fence, told.attempt
    if told.action == "FOLLOWER_WAIT":
        assert told.events_from is not None
        assert told.last_event is not None
        return told.action, told.fence, told.events_from.id, told.last_event.id, told.wait
    if told.action == "REPLAY_SUCCESS":
        return told.action, told.fence, told.envelope
    if told.action == "REPLAY_FAILURE":
        e = told.error
        assert e is not None
        return told.action, told.fence, e.error_type, e.code, e.retryable, e.status, told.wait
    return (told.action,)


def _all(model: Model) -> list[Any]:
    return list(model.flights)


def _meta(meta: Meta) -> dict[str, str]:
    """As the hash must be."""
    known = ("state", "fence", "owner", "worker", "digest", "ownerships", "silent", "action")
    times = ("created", "heartbeat", "deadline", "seq")
    fields = {name: str(getattr(meta, name)) for name in (*known, *times)}
    fields |= {"tenant": "", "stage": "scoring", "events_from": meta.events_from.id}
    if meta.result_fence:
        fields |= {"result_fence": str(meta.result_fence), "checksum": meta.checksum}
        fields |= {"codec": PACKED[0], "size": str(PACKED[1])}
    if meta.error is not None:
        error = {**vars(meta.error), "retryable": int(meta.error.retryable)}
        fields |= {name: str(value) for name, value in error.items()}
    return fields


def _plain(key: str, content: Any) -> Any:
    """As the model holds it."""
    part = key.partition(":")[0]
    if part == "result":
        return content
    if part == "fence":
        return int(content)
    if part == "events":
        return [(entry.decode(), _pairs(fields)) for entry, fields in content]
    pairs = _pairs(content)
    return pairs if part == "meta" else {name: int(value) for name, value in pairs.items()}


def _pairs(flat: list[bytes]) -> dict[str, str]:
    return {flat[i].decode(): flat[i + 1].decode() for i in range(0, len(flat), 2)}
