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
from flightsvc.flight.coordinator import FlightCoordinator, Outcome, Refused
from flightsvc.settings import Settings
from flightsvc.store import Names
from tests.proof.clocked import CLOCK, ClockedStore
from tests.proof.deciding import Told
from tests.proof.model import Model
from tests.proof.reading import expected_words, hash_of, plain, words
from tests.proof.world import DEADLINE, DETECT, FAILURE_TTL, RESULT_TTL
from tests.support.redis_server import RedisServer

FLIGHTS = 2
#: the time at the beginning, in microseconds
BEGIN = 1_700_000_000_000_000
#: no two steps share a microsecond, as with a real server; nothing expires between two steps
TICK = 1
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
        """Everything is lost."""
        self.store.client.flushall()
        self.store.set_clock(self.model.us)
        for key in list(self.model.present()):
            self.model.drop(key)

    def lose(self, key: str) -> None:
        """One key is lost, by its name in the model."""
        self.store.client.delete(self._keys[key])
        self.model.drop(key)

    def trim(self, flight: int) -> None:
        """What is in a stream is lost."""
        self.store.client.xtrim(self._keys[f"events:{flight}"], maxlen=0, approximate=False)
        events = self.model.flights[flight].events
        if events is not None:
            events.events = []

    def step(self, real: Callable[[], Any], model: Callable[[], Any]) -> tuple[Any, Any]:
        """Do something on both sides, then compare everything that they hold.

        :returns: both answers; :meth:`agree` compares those to a question.
        """
        got, expected = real(), model()
        later = self.model.us + TICK
        assert later // 1000 == self.model.ms, "too many steps without a change of time"
        self.look(later)
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
        real = {key: plain(key, content) for key, (_, content) in found.items()}
        assert real == {key: self._expected(key) for key in self.model.present()}

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
            live = self.model.live.items()
            return {self.key(int(name)).flight_id: at for name, at in live}
        flight = self.model.flights[int(number)]
        if part == "meta":
            assert flight.meta is not None
            return hash_of(flight.meta)
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
