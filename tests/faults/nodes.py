"""Two nodes: gunicorn masters with workers of their own, on one Redis, asking one model."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from signal import SIGCHLD
from types import TracebackType
from typing import Any, Self

import gevent

from flightsvc.model_server.process import ModelServerProcess
from flightsvc.store import Names
from tests.faults.callers import MODEL, Asker, Question
from tests.metrics.receiver import Receiver
from tests.processes import alive, wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Reply, Service

HEARTBEAT_S, DETECT_S, GRACE_S = 0.2, 1.0, 2.0
#: what gunicorn's master waits after a TERM before it kills
KILLED_AFTER_S = GRACE_S + 5
#: workers need so long to start at most, in s, also where all tests run at once
BOOT_S = 60


class Node:
    """One gunicorn master.

    :param name: first part of its metrics' names.
    :param env: settings beside those of all nodes.
    """

    def __init__(
        self, name: str, workers: int, env: Mapping[str, str], options: tuple[str, ...]
    ) -> None:
        self.name = name
        self.workers = workers
        self.service = Service(
            {**env, "FLIGHTSVC_STATSD_PREFIX": name}, workers=workers, options=options
        )

    @property
    def pid(self) -> int:
        """The only worker's."""
        (pid,) = self.service.worker_pids()
        return pid

    def ask(self, question: Question, askers: int = 1) -> list[Asker]:
        """Several callers at once."""
        return [Asker(self.service.url, question) for _ in range(askers)]

    def answer(self, question: Question) -> Reply:
        """What one more caller gets."""
        return Asker(self.service.url, question).reply()

    def readiness(self) -> tuple[int, str, str]:
        """What ``/readyz`` says: status, whether requests are welcome, Redis."""
        reply = self.service.get("/readyz", timeout_s=5)
        said = reply.json()
        return reply.status, said["status"], said["redis"]

    def complete(self) -> bool:
        """Whether all its workers run, have signal handlers of their own, and it answers."""
        try:
            workers = self.service.worker_pids()
            up = len(workers) == self.workers and all(map(booted, workers))
            return up and self.service.get("/healthz", timeout_s=5).status == 200
        except OSError:
            return False

    def revive(self) -> None:
        """Start it again, if its master has ended."""
        try:
            if alive(self.service.pid):
                return
        except AssertionError:
            pass  # its end was waited for
        self.service.stop()
        self.service.start(probe="/healthz")


def booted(worker: int) -> bool:
    """Whether a new worker no longer has its master's signal handlers, which lose what it is told.

    Only the master wants to know of its children's ends.
    """
    status = Path(f"/proc/{worker}/status").read_text()
    (caught,) = re.findall(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return not int(caught, 16) & 1 << SIGCHLD - 1


class Pair:
    """Two nodes, ``a`` and ``b``, and everything around them.

    :param redis: the one that both use.
    :param urls: how each reaches it; by default directly.
    :param workers: of each.
    :param mode: of both.
    :param env: further settings of both.
    :param options: words of gunicorn's command line, for each.
    """

    def __init__(
        self,
        redis: RedisServer,
        model: ModelServerProcess,
        *,
        urls: tuple[str, str] | None = None,
        workers: tuple[int, int] = (1, 1),
        mode: str = "hybrid",
        env: Mapping[str, str] | None = None,
        options: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    ) -> None:
        self.redis = redis
        self.model = model
        self.mode = mode
        self.namespace = "t-" + os.urandom(6).hex()
        self.metrics = Receiver()
        everywhere = {**self._settings(mode), **(env or {})}
        urls = urls or (redis.url, redis.url)
        self.a, self.b = (
            Node(name, count, {**everywhere, "FLIGHTSVC_REDIS_URL": url}, words)
            for name, count, url, words in zip("ab", workers, urls, options, strict=True)
        )

    @property
    def nodes(self) -> tuple[Node, Node]:
        return self.a, self.b

    def await_complete(self) -> None:
        """Wait until all workers of both nodes serve."""
        wait_until(lambda: self.a.complete() and self.b.complete(), BOOT_S)

    def calls(self, question: Question) -> int:
        """How often the model was asked a question for which there is a rule."""
        calls: int = self.model.stats()["by_rule"].get(question.session, 0)
        return calls

    def await_calls(self, question: Question, calls: int = 1) -> None:
        """Wait until the model was asked so often."""
        wait_until(lambda: self.calls(question) >= calls)

    def follow(self, node: Node, question: Question, askers: int) -> list[Asker]:
        """So many callers who wait in a node, and further ones until each worker there follows."""
        asking = node.ask(question, askers)
        self.await_waiting(node, askers)
        while self.following(question) < node.workers:  # which worker accepts is up to the kernel
            asking += node.ask(question)
            gevent.sleep(0.05)
        return asking

    def await_waiting(self, node: Node, callers: int) -> None:
        """Wait until so many callers wait in a node."""
        wait_until(lambda: self.waiting(node) == callers)

    def await_following(self, question: Question, workers: int = 1) -> None:
        """Wait until at least so many workers beside the owner's are known to wait for a flight."""
        wait_until(lambda: self.following(question) >= workers)

    def following(self, question: Question) -> int:
        """How many workers beside the owner's are known to wait for a flight."""
        interest = Names(self.namespace, 16).flight(question.flight_id)["interest"]
        client: Any = self.redis.client()
        return int(client.hlen(interest))

    def waiting(self, node: Node) -> float:
        """How many callers wait in a node, as it last said."""
        return self.last(node, "flight.waiters")

    def last(self, node: Node, gauge: str) -> float:
        """What a node's workers last said of a gauge, together."""
        said: dict[str, float] = {}
        for line in self.metrics.lines:
            name, _, rest = line.partition(":")
            if name.startswith(f"{node.name}.{gauge}."):
                said[name] = float(rest.split("|")[0])
        return sum(said.values())

    def counted(self, node: Node, name: str) -> float:
        """A counter of all of a node's workers."""
        return self.metrics.totals().get(f"{node.name}.{name}", 0)

    def events(self, question: Question) -> list[tuple[int, str, int]]:
        """A flight's events, as Redis has them: time in ms, kind, fence."""
        client: Any = self.redis.client()
        found = client.xrange(Names(self.namespace, 16).flight(question.flight_id)["events"])
        return [
            (int(entry.partition(b"-")[0]), fields[b"kind"].decode(), int(fields[b"fence"]))
            for entry, fields in found
        ]

    def await_redis(self, node: Node, state: str, within_s: float = 15) -> None:
        """Wait until a node says so of its Redis."""
        wait_until(lambda: node.readiness()[2] == state, within_s)

    def warm(self) -> None:
        """Wait until both nodes are as good as new, and have used the scripts of a flight."""
        self.await_complete()
        for node in self.nodes:
            self.await_redis(node, "ok")
            assert node.answer(Question("warm")).status == 200

    def without_ttl(self) -> list[bytes]:
        """The names that would stay for ever, but for those that should."""
        client: Any = self.redis.client()
        names = list(client.scan_iter(f"*{self.namespace}*", count=1000))
        return [name for name in names if client.ttl(name) == -1 and not name.endswith(b":fence")]

    def __enter__(self) -> Self:
        starting = [gevent.spawn(node.service.start, probe="/healthz") for node in self.nodes]
        try:
            gevent.joinall(starting, raise_error=True)
            self.await_complete()
        except BaseException as error:
            gevent.joinall(starting)
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            for node in self.nodes:
                print(f"--- node {node.name}\n{node.service.log()[-6_000:]}")
        gevent.joinall([gevent.spawn(node.service.close) for node in self.nodes])
        self.metrics.close()

    def _settings(self, mode: str) -> dict[str, str]:
        return {
            "FLIGHTSVC_NAMESPACE": self.namespace,
            "FLIGHTSVC_MODE": mode,
            "FLIGHTSVC_HEARTBEAT_MS": f"{HEARTBEAT_S * 1000:.0f}",
            "FLIGHTSVC_TAKEOVER_DETECT_MS": f"{DETECT_S * 1000:.0f}",
            "FLIGHTSVC_GRACE_S": str(GRACE_S),
            "FLIGHTSVC_PROVIDER": "openai",
            "FLIGHTSVC_OPENAI_BASE_URL": self.model.base_url,
            "FLIGHTSVC_OPENAI_MODEL": MODEL,
            "FLIGHTSVC_BREAKER_FAILURES": "1000",
            "FLIGHTSVC_STAGES__EVALUATION__TIMEOUT_MS": "9000",
            "FLIGHTSVC_STAGES__EVALUATION__BUDGET_MS": "10000",
            "FLIGHTSVC_STAGES__EVALUATION__RETRY_DELAYS_MS": "[]",
            "FLIGHTSVC_STATSD_HOST": "127.0.0.1",
            "FLIGHTSVC_STATSD_PORT": str(self.metrics.port),
            "FLIGHTSVC_STATSD_FLUSH_MS": "100",
        }
