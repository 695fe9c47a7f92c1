"""What a flight costs Redis as its callers grow: commands and bytes, on two workers.

python -m benchmarks.cost [CALLERS …]
"""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import sys
from dataclasses import dataclass

import gevent
import redis

from benchmarks.servers import redis_server
from flightsvc.flight import FlightContext, FlightKey, SingleFlight


@dataclass(frozen=True)
class Cost:
    """Of one flight: commands that Redis ran, and bytes in and out."""

    callers: int
    commands: int
    bytes_in: int
    bytes_out: int


def measure(callers: int) -> Cost:
    """One flight of half a second on two workers; both have asked before."""
    with redis_server() as url:
        admin = redis.Redis.from_url(url, protocol=2)
        workers = [SingleFlight.from_url(url, namespace="cost") for _ in range(2)]
        _fly(workers, FlightKey("cost", "warm"), 2)
        admin.config_resetstat()
        _fly(workers, FlightKey("cost", "flight"), callers)
        stats = admin.info("stats")
        commands = sum(
            int(line["calls"])
            for name, line in admin.info("commandstats").items()
            if name.removeprefix("cmdstat_") in ("evalsha", "eval", "xread", "xinfo|stream")
        )
        for worker in workers:
            worker.close()
    return Cost(
        callers,
        commands,
        int(stats["total_net_input_bytes"]),
        int(stats["total_net_output_bytes"]),
    )


def _fly(workers: list[SingleFlight], key: FlightKey, callers: int) -> None:
    def call(_ctx: FlightContext) -> str:
        gevent.sleep(0.3)
        return "an answer"

    asking = [gevent.spawn(workers[n % 2].run, key, call) for n in range(callers)]
    gevent.joinall(asking, raise_error=True)


def main() -> None:
    for callers in [int(word) for word in sys.argv[1:]] or [1, 10, 100, 1_000, 10_000]:
        cost = measure(callers)
        print(
            f"{callers:6} callers: {cost.commands} commands, "
            f"{cost.bytes_in} bytes in, {cost.bytes_out} bytes out"
        )


if __name__ == "__main__":
    main()
