"""Small costs: packing an answer as Base64 and raw, and the guard around a call that costs nothing.

python -m benchmarks.small
"""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from flightsvc.flight.serializer import Encoding, ResultSerializer
from flightsvc.guard import AiCallGuard, Route, Routes, Target
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings

SIZES = (1_000, 100_000, 4_000_000)


@dataclass(frozen=True)
class Packing:
    """Times in ms and the stored size in bytes, by encoding."""

    size: int
    pack_ms: dict[str, float]
    unpack_ms: dict[str, float]
    stored: dict[str, int]


def median_ms(work: Callable[[], object], rounds: int = 9) -> float:
    """The median time of a piece of work."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def sample(size: int) -> str:
    """Text like a model's, half Chinese."""
    words = ["the", "answer", "explains", "索引", "缓存", "一致性", "and", "事务", "隔离", "级别"]
    pick = random.Random(7)
    text = ""
    parts: list[str] = []
    while len(text) < size:
        parts += [pick.choice(words) + str(pick.randrange(100)) for _ in range(2_000)]
        text = " ".join(parts)
    return text.encode()[: size - 2].decode("utf-8", "ignore")


def packing(size: int) -> Packing:
    """One size, both encodings."""
    value = sample(size)
    pack_ms: dict[str, float] = {}
    unpack_ms: dict[str, float] = {}
    stored: dict[str, int] = {}
    encodings: tuple[Encoding, ...] = ("base64", "raw")
    for encoding in encodings:
        serializer = ResultSerializer(8_000_000, encoding)
        payload = serializer.freeze(value)
        blob = serializer.pack(payload).blob
        pack_ms[encoding] = median_ms(lambda s=serializer, p=payload: s.pack(p))  # type: ignore[misc]
        unpack_ms[encoding] = median_ms(lambda s=serializer, b=blob: s.unpack(b))  # type: ignore[misc]
        stored[encoding] = len(blob)
    return Packing(size, pack_ms, unpack_ms, stored)


def guard_us(calls: int = 5_000) -> float:
    """What the guard adds to a call that costs nothing, in µs."""
    guard = AiCallGuard(Settings(), Metrics.off())

    def attempt(_timeout_s: float) -> int:
        return 1

    routes = Routes(Route(Target("openai", "a-model"), attempt))

    def guarded() -> None:
        for _ in range(calls):
            guard.execute("evaluation", routes)

    def bare() -> None:
        for _ in range(calls):
            attempt(1.0)

    return (median_ms(guarded) - median_ms(bare)) / calls * 1000


def main() -> None:
    for size in SIZES:
        got = packing(size)
        print(
            f"{size:9,} bytes: pack {got.pack_ms['base64']:.2f} / {got.pack_ms['raw']:.2f} ms, "
            f"unpack {got.unpack_ms['base64']:.2f} / {got.unpack_ms['raw']:.2f} ms, "
            f"stored {got.stored['base64']:,} / {got.stored['raw']:,} bytes (base64 / raw)"
        )
    print(f"guard: {guard_us():.1f} µs a call")


if __name__ == "__main__":
    main()
