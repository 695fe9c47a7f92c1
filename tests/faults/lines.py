"""Nodes whose way to Redis can be harmed: node a reaches it through a proxy, node b directly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.nodes import Node, Pair, Question
from tests.faults.proxy import Proxy
from tests.processes import wait_until
from tests.support.redis_server import RedisServer


class LinePair(Pair):
    """A pair of nodes, and the line between node a and Redis."""

    line: Proxy

    def recover(self) -> None:
        """End all harm, and wait until both nodes are as good as new."""
        self.line.heal()
        self.await_complete()
        for node in self.nodes:
            self.await_redis(node, "ok")
            # its worker has used every script of a new flight, so that Redis knows them
            assert node.answer(Question("warm")).status == 200

    def await_redis(self, node: Node, state: str, within_s: float = 15) -> None:
        """Wait until a node says so of its Redis."""
        wait_until(lambda: node.readiness()[2] == state, within_s)


@contextmanager
def line_pair(
    redis: RedisServer,
    model: ModelServerProcess,
    *,
    mode: str = "hybrid",
    env: Mapping[str, str] | None = None,
) -> Iterator[LinePair]:
    """Start both nodes, with one worker each."""
    with Proxy(redis) as line:
        pair = LinePair(redis, model, urls=(line.url, redis.url), mode=mode, env=env)
        pair.line = line
        with pair:
            yield pair
