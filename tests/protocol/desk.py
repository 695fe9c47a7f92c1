"""One flight and its scripts: each is run by the names of its parameters, then looked after.

After every script that runs here, every key of the namespace must have a TTL, but for the fences.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Self

from flightsvc.flight import verbs
from flightsvc.flight.coordinator import FlightCoordinator
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store import Names, Verb, open_store
from tests.support.redis_server import RedisServer

DETECT_MS = 5_000
DEADLINE_MS = 60_000
SHARDS = 4

#: What a script is called with where a test does not say.
USUAL: dict[str, str | int] = {
    "token": "a",
    "worker": "w1",
    "tenant": "acme",
    "stage": "scoring",
    "digest": "",
    "takeover_detect_ms": DETECT_MS,
    "deadline_ms": DEADLINE_MS,
    "live_ttl_ms": 30_000,
    "failure_ttl_ms": 20_000,
    "min_fence": 0,
    "waited_fence": 0,
    "replay": 1,
    "may_own": 1,
    "max_ownerships": 5,
    "max_silent": 3,
    "envelope": "answer",
    "codec": "none+raw",
    "size": 6,
    "checksum": "c0ffee00",
    "result_ttl_ms": 40_000,
    "events_ttl_ms": 15_000,
    "error_type": "PROVIDER",
    "code": "PROVIDER_ERROR",
    "retryable": 1,
    "status": 503,
    "wait_ms": 0,
    "fallback": "",
    "first": 0,
    "ttl_ms": 60_000,
}

Reply = list[Any]
Content = dict[str, Any]


class Desk:
    """Where one flight is asked and told about, a script at a time.

    :param flight_id: by default one that nobody else uses.
    """

    def __init__(self, server: RedisServer, namespace: str, flight_id: str = "") -> None:
        self.server = server
        self.namespace = namespace
        self.flight_id = flight_id or os.urandom(16).hex()
        self.client: Any = server.client()
        self.names = Names(namespace, SHARDS)
        self.keys = self.names.flight(self.flight_id)
        self.store = open_store(
            Settings(redis_url=server.url, redis_timeout_ms=5000), Metrics.off()
        )

    def run(self, verb: Verb, *each: str | int | bytes, **given: str | int) -> Reply:
        """Run a script for this desk's flight.

        :param each: what repeats after the named ARGV (the chunks of append).
        :param given: ARGV by name; the rest is as usual.
        """
        words = {**USUAL, "id": self.flight_id, **given}
        keys = {**self.keys, "wake": self.names.wake(str(words["worker"]))}
        reply = self.store.run(verb, verb.key_list(keys), [*(words[a] for a in verb.args), *each])
        self.check_ttls()
        return list(_text(reply if isinstance(reply, list) else [reply]))

    def beat(self, *owned: tuple[str, str, str], live_ttl_ms: int = 30_000) -> Reply:
        """Run the script of the heartbeat for flights of this desk's shard.

        :param owned: flight id, token and fence of each.
        """
        keys = [self.keys["live"]]
        args: list[str | int] = [live_ttl_ms]
        for flight_id, token, fence in owned:
            assert self.names.shard_of(flight_id) == self.names.shard_of(self.flight_id)
            keys += [self.names.flight(flight_id)[key] for key in verbs.BEAT.each_keys]
            args += [flight_id, token, fence]
        reply = self.store.run(verbs.BEAT, keys, args)
        self.check_ttls()
        return list(_text(reply))

    def ask(self, token: str = "a", **given: str | int) -> Reply:
        """Acquire or join."""
        return self.run(verbs.ACQUIRE, token=token, **given)

    def own(self, token: str = "a", **given: str | int) -> str:
        """Acquire, and be given it.

        :returns: the fence.
        """
        reply = self.ask(token, **given)
        assert reply[0] in ("OWNER_NEW", "OWNER_TAKEOVER"), reply
        return str(reply[1])

    def finish(self, fence: str, token: str = "a", **given: str | int) -> None:
        """End it with an answer."""
        assert self.run(verbs.FINISH, fence=fence, token=token, **given) == ["OK"]

    def fail(self, fence: str, token: str = "a", **given: str | int) -> None:
        """End it with a failure."""
        assert self.run(verbs.FAIL, fence=fence, token=token, **given) == ["OK"]

    def reach(self, state: str | None, token: str = "a") -> str:
        """Bring a new flight into a state (None: none).

        :returns: the fence.
        """
        if state is None:
            return "1"
        fence = self.own(token)
        if state == "RUNNING":
            assert self.run(verbs.MARK_RUNNING, token=token, fence=fence) == ["OK"]
        elif state == "SUCCEEDED":
            self.finish(fence, token)
        elif state == "FAILED":
            self.fail(fence, token)
        assert self.meta()["state"] == state
        return fence

    def silence(self, ms: int = DETECT_MS + 1) -> None:
        """Make the last heartbeat older, as if the owner had been silent; a new one, if < 0."""
        self.client.hset(self.keys["meta"], "heartbeat", self.now_ms() - ms)

    def coordinator(self, worker: str = "w1", **settings: Any) -> FlightCoordinator:
        """A worker's own coordinator, in this desk's namespace."""
        given = {"takeover_detect_ms": DETECT_MS, "flight_shards": SHARDS, **settings}
        checked = Settings.checked(namespace=self.namespace, redis_url=self.server.url, **given)
        return FlightCoordinator(self.store, self.names, checked, worker)

    # -- looking -----------------------------------------------------------------------------

    def now_us(self) -> int:
        """The server's clock."""
        seconds, micros = self.client.time()
        return int(seconds) * 1_000_000 + int(micros)

    def now_ms(self) -> int:
        """The server's clock."""
        return self.now_us() // 1000

    def meta(self) -> dict[str, str]:
        """The flight's state."""
        return dict(_text(self.client.hgetall(self.keys["meta"])))

    def events(self) -> list[tuple[str, dict[str, str]]]:
        """The flight's events, each with its id."""
        return [(_text(at), _text(event)) for at, event in self.client.xrange(self.keys["events"])]

    def ttl(self, key: str) -> int:
        """What is left to a key of the flight, in ms."""
        return int(self.client.pttl(self.keys[key]))

    def all_keys(self) -> list[bytes]:
        """Every key of the namespace."""
        return sorted(self.client.scan_iter(f"{{{self.namespace}.*", count=10_000))

    def check_ttls(self) -> None:
        """Every key of the namespace must have a TTL, but for the fences."""
        keys = [key for key in self.all_keys() if not key.endswith(b":fence")]
        with self.client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.pttl(key)
            ttls = pipe.execute()
        assert [key for key, ttl in zip(keys, ttls, strict=True) if ttl == -1] == []

    def content(self) -> Content:
        """Everything under the namespace, whatever its TTL."""
        return {_text(key): self._content(key) for key in self.all_keys()}

    def _content(self, key: bytes) -> Any:
        kind = self.client.type(key)
        if kind == b"hash":
            return _text(self.client.hgetall(key))
        if kind == b"stream":
            return [(_text(at), _text(event)) for at, event in self.client.xrange(key)]
        if kind == b"zset":
            return _text(self.client.zrange(key, 0, -1, withscores=True))
        return self.client.get(key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.store.close()
        self.client.close()


def _text(value: Any) -> Any:
    """The same, with text instead of bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {_text(key): _text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_text(item) for item in value]
    return value
