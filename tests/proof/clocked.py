"""The real scripts with a clock that the test sets.

Each script takes the time through one function, which asks ``TIME`` once. In the copy that runs
here it asks a hash instead; nothing else is changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha1
from typing import Any

from redis.exceptions import NoScriptError

from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.settings.redis_url import parse_redis_url
from flightsvc.store import Store, Verb, scripts
from flightsvc.store.single import single_server
from tests.support.redis_server import RedisServer

#: Where the copies find the time: seconds and microseconds, as ``TIME`` gives them.
CLOCK = "the-clock"
_REAL = "redis.call('TIME')"
_OURS = f"redis.call('HMGET', '{CLOCK}', 's', 'us')"
_FUNCTION = re.compile(
    r"^local function now_(ms|us)\(\)\n  local t = redis\.call\('TIME'\)\n", re.M
)


@cache
def clocked(name: str) -> str:
    """A script's text with the other clock."""
    text = scripts.source(name).decode()
    asked = text.count("TIME'")
    assert asked == len(_FUNCTION.findall(text)) <= 1, f"{name} asks for the time elsewhere"
    return text.replace(_REAL, _OURS)


class ClockedStore(Store):
    """A store that runs the copies.

    :param server: holds the clock too; :meth:`set_clock` first.
    """

    def __init__(self, server: RedisServer) -> None:
        self.client: Any = server.client()
        super().__init__(single_server(Settings(), parse_redis_url(server.url)), Metrics.off())

    def close(self) -> None:
        super().close()
        self.client.close()

    def set_clock(self, us: int) -> None:
        """Set the time, in microseconds."""
        self.client.hset(CLOCK, mapping={"s": us // 1_000_000, "us": us % 1_000_000})

    def run(self, verb: Verb, keys: Sequence[str], args: Sequence[str | bytes | int]) -> Any:
        return self.run_text(clocked(verb.name), keys, args)

    def run_text(self, text: str, keys: Sequence[str], args: Sequence[str | bytes | int]) -> Any:
        """Run any script."""
        try:
            return self.client.evalsha(_name(text), len(keys), *keys, *args)
        except NoScriptError:
            return self.client.eval(text, len(keys), *keys, *args)


@cache
def _name(text: str) -> str:
    return sha1(text.encode()).hexdigest()
