"""How late callers have their answer after the model had ended: flightsvc against the floor.

    python -m benchmarks.lateness [CALLERS …]

Two processes share the callers of one question. Both kinds take turns in one run, so that their
ratio holds on a machine whose speed drifts.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass

from benchmarks.servers import redis_server

ROUNDS = 7
KINDS = ("floor", "flightsvc")


@dataclass(frozen=True)
class Lateness:
    """Medians over the rounds, in ms, and the ratio of each pair of rounds."""

    callers: int
    p50: dict[str, float]
    p99: dict[str, float]
    ratio: float
    errors: int


class Pair:
    """Two processes of one kind."""

    def __init__(self, kind: str, url: str, callers: int) -> None:
        command = [sys.executable, "-m", "benchmarks.crowd", kind, url, str(callers // 2)]
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        for process in self._processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"

    def round(self, key: str) -> tuple[list[float], int]:
        """One round: how late each caller was, in ms and in order; and how many errors."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(key + "\n")
            process.stdin.flush()
        late: list[float] = []
        errors = 0
        for process in self._processes:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            late += [(at - said["ended"]) * 1000 for at in said["answered"]]
            errors += len(said["errors"])
        return sorted(late), errors

    def close(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()


def measure(callers: int, rounds: int = ROUNDS) -> Lateness:
    """Both kinds in turn; the first round of each only warms up.

    :param callers: on both processes together.
    """
    p50: dict[str, list[float]] = {kind: [] for kind in KINDS}
    p99: dict[str, list[float]] = {kind: [] for kind in KINDS}
    failed = 0
    with redis_server() as url:
        pairs = {kind: Pair(kind, url, callers) for kind in KINDS}
        for number in range(rounds + 1):
            for kind, pair in pairs.items():
                late, errors = pair.round(f"{kind}-{callers}-{number}")
                failed += errors
                if number:
                    p50[kind].append(late[len(late) // 2])
                    p99[kind].append(late[min(len(late) - 1, int(len(late) * 0.99))])
        for pair in pairs.values():
            pair.close()
    ratios = [ours / floor for floor, ours in zip(p99["floor"], p99["flightsvc"], strict=True)]
    return Lateness(
        callers,
        {kind: statistics.median(values) for kind, values in p50.items()},
        {kind: statistics.median(values) for kind, values in p99.items()},
        statistics.median(ratios),
        failed,
    )


def main() -> None:
    for callers in [int(word) for word in sys.argv[1:]] or [100, 1_000, 10_000]:
        got = measure(callers)
        print(
            f"{callers:6} callers: p99 floor {got.p99['floor']:.1f} ms, "
            f"flightsvc {got.p99['flightsvc']:.1f} ms, ratio {got.ratio:.2f}; "
            f"p50 {got.p50['floor']:.1f} / {got.p50['flightsvc']:.1f} ms; {got.errors} errors"
        )


if __name__ == "__main__":
    main()
