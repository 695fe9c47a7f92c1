"""Nodes whose way to Redis can be harmed: node a reaches it through a proxy, node b directly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.nodes import Pair
from tests.faults.proxy import Proxy
from tests.support.redis_server import RedisServer


class LinePair(Pair):
    """A pair of nodes, and the line between node a and Redis."""

    line: Proxy

    def recover(self) -> None:
        """End all harm, and wait until both nodes are as good as new."""
        self.line.heal()
        self.warm()


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
