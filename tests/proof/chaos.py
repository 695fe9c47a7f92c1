"""Workers that ask all the time, and random harm to them, to their lines and to their Redis."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import gevent
import redis

from tests.faults.incident import Harm
from tests.faults.proxy import Proxy
from tests.faults.resp import command, script
from tests.proof.handle import Worker
from tests.proof.history import Entry, Journal, read
from tests.support.redis_server import RedisServer

WORKERS = 3
#: what the workers of these runs send: scripts, and a command
HARMED = ("acquire", "mark_running", "beat", "finish", "fail", "release", "wake", "XREAD")
SETTINGS: dict[str, Any] = {
    "heartbeat_ms": 100,
    "takeover_detect_ms": 400,
    "redis_timeout_ms": 100,
    "stages": {"default": {"timeout_ms": 1_500, "budget_ms": 1_500, "retry_delays_ms": []}},
}


class Chaos:
    """A run.

    :param seed: of everything that is random in it; time is not.
    :param calm: no harm is done, no call fails, and nobody refuses replays.
    """

    def __init__(self, folder: Path, seed: int, *, calm: bool = False) -> None:
        self._folder = folder
        self._seed = seed
        self._rng = random.Random(seed)
        mode = self._rng.choice(["hybrid", "hybrid", "distributed"])
        mood = "calm" if calm else "moody"
        self._options = [mood, json.dumps({**SETTINGS, "mode": mode})]
        self._journal = Journal(folder / "faults.jsonl", "")
        self._server = RedisServer()
        self._proxies = [Proxy(self._server, tcp=False) for _ in range(WORKERS)]
        self._workers: list[Worker] = []
        self._started = 0
        self._healing: list[gevent.Greenlet[..., Any]] = []

    def run(self, seconds: float) -> list[Entry]:
        """Do harm for a while, heal everything, and ask once more.

        :returns: what happened.
        """
        for worker in self._workers:
            worker.hears("ready")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            gevent.sleep(self._rng.uniform(0.05, 0.4))
            if self._options[0] == "moody":
                self._harm()
        gevent.joinall(self._healing, raise_error=True)
        for each, what in (("stop", "stopped"), ("ask at the end", "asked")):
            for worker in self._workers:
                worker.tell(each)
            for worker in self._workers:
                worker.hears(what)
        self._check_ttls()
        return self.history()

    def history(self) -> list[Entry]:
        """What happened so far."""
        return read(self._folder.glob("*.jsonl"))

    # -- harm --------------------------------------------------------------------------------

    def _harm(self) -> None:
        kinds: dict[Callable[[], None], int] = {
            self._kill_worker: 1,
            self._freeze_worker: 3,
            self._harm_request: 8,
            self._silence_line: 2,
            self._cut_line: 2,
            self._forget_scripts: 1,
            self._kill_clients: 1,
            self._lose_key: 3,
            self._lose_all: 1,
            self._freeze_redis: 1,
            self._restart_redis: 1,
        }
        self._rng.choices(list(kinds), list(kinds.values()))[0]()

    def _kill_worker(self) -> None:
        number = self._rng.randrange(WORKERS)
        worker = self._workers[number]
        if not worker.frozen:
            worker.kill()
            self._note("killed", worker.name)
            self._workers[number] = self._start(number)

    def _freeze_worker(self) -> None:
        worker = self._rng.choice(self._workers)
        if worker.frozen:
            return
        worker.frozen = True
        self._note("stopped", worker.name)
        worker.signal(signal.SIGSTOP)
        self._later(self._rng.uniform(0.1, 1.5), lambda: self._thaw_worker(worker))

    def _thaw_worker(self, worker: Worker) -> None:
        worker.signal(signal.SIGCONT)
        self._note("goes on", worker.name)
        worker.frozen = False

    def _harm_request(self) -> None:
        """Something happens to the next request of a kind on one line, or to its reply."""
        name, harm = self._rng.choice(HARMED), self._rng.choice(list(Harm))
        match = command(name) if name == "XREAD" else script(name)
        incident = self._rng.choice(self._proxies).plan(harm, match)
        self._note(f"{harm.name.lower()} of {name}")
        self._later(self._rng.uniform(0.05, 0.8), incident.let_go)

    def _silence_line(self) -> None:
        proxy = self._rng.choice(self._proxies)
        both = self._rng.random() < 0.5
        proxy.fall_silent(requests=both or self._rng.random() < 0.5)
        self._note("a silent line")
        self._later(self._rng.uniform(0.05, 0.8), proxy.heal)

    def _cut_line(self) -> None:
        proxy = self._rng.choice(self._proxies)
        proxy.reset()
        self._note("connections reset")

    def _forget_scripts(self) -> None:
        self._tell_redis("scripts flushed", lambda client: client.script_flush())

    def _kill_clients(self) -> None:
        self._tell_redis("clients killed", lambda client: client.execute_command(*KILL_CLIENTS))

    def _lose_key(self) -> None:
        kind = self._rng.choice(["meta", "events", "result", "interest", "live", "fence"])

        def lose(client: redis.Redis) -> None:
            names = sorted(client.keys(f"*:{kind}*"))
            if names:
                client.delete(*self._rng.sample(names, min(3, len(names))))

        self._tell_redis(f"lost some {kind}", lose)

    def _lose_all(self) -> None:
        self._tell_redis("lost everything", lambda client: client.flushall())

    def _freeze_redis(self) -> None:
        self._note("redis stopped")
        self._server.freeze()
        # the others wait: nothing else is done to a server that is frozen
        gevent.sleep(self._rng.uniform(0.05, 0.6))
        self._server.thaw()
        self._note("redis goes on")

    def _restart_redis(self) -> None:
        self._server.kill()
        gevent.sleep(self._rng.uniform(0.0, 0.3))
        self._note("lost everything: redis begins anew")
        self._server.start()

    # -- small things ------------------------------------------------------------------------

    def _start(self, number: int) -> Worker:
        self._started += 1
        name, seed = f"w{number}.{self._started}", self._seed * 1000 + self._started
        return Worker(self._proxies[number].url, name, self._folder, seed, self._options)

    def _note(self, what: str, worker: str = "") -> None:
        self._journal.write("fault", got=what, worker=worker)

    def _later(self, after_s: float, do: Callable[[], None]) -> None:
        self._healing.append(gevent.spawn_later(after_s, do))

    def _tell_redis(self, what: str, do: Callable[[Any], object]) -> None:
        with self._server.client() as client:
            do(client)
        self._note(what)

    def _check_ttls(self) -> None:
        """Invariant 5."""
        with self._server.client() as client:
            names: list[bytes] = client.keys("*")
            forever = [name for name in names if client.ttl(name) == -1]
        assert [name for name in forever if not name.endswith(b":fence")] == []

    def __enter__(self) -> Self:
        self._server.start()
        for proxy in self._proxies:
            proxy.mend()
        self._workers = [self._start(number) for number in range(WORKERS)]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        gevent.killall(self._healing)
        for worker in self._workers:
            worker.kill()
        for proxy in self._proxies:
            proxy.__exit__(None, None, None)
        self._server.kill()
        self._server.__exit__(None, None, None)
        self._journal.close()


KILL_CLIENTS = ("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
