"""L1 replays over HTTP against a bare Flask route on the same gunicorn.

python -m benchmarks.replay
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys

from benchmarks import servers
from benchmarks.http_peers import question

ROUNDS = 7
REQUESTS = 4_000
AT_ONCE = 32


def rate(url: str, body: str) -> float:
    """Requests a second."""
    command = [sys.executable, "-m", "benchmarks.loader", url, str(REQUESTS), str(AT_ONCE), body]
    said = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert list(said["codes"]) == ["200"], said["codes"]
    return REQUESTS / float(said["seconds"])


def measure(rounds: int = ROUNDS) -> tuple[float, float, float]:
    """Medians: requests a second of a replay and of the bare route, and the ratio of the pairs."""
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(
            servers.service(SIMULATED_LATENCY_MS="0", STAGES__EVALUATION__L1_TTL_S="600")
        )
        bare = stack.enter_context(servers.service(app="benchmarks.bare:app"))
        route, body = "/v1/interviews/s/evaluations", question(0)
        pairs = []
        for number in range(rounds + 1):
            pair = rate(ours + route, body), rate(bare + route, body)
            if number:
                pairs.append(pair)
    return (
        statistics.median(replay for replay, _ in pairs),
        statistics.median(plain for _, plain in pairs),
        statistics.median(replay / plain for replay, plain in pairs),
    )


def main() -> None:
    replay, plain, ratio = measure()
    print(f"L1 replay {replay:.0f}/s, bare Flask route {plain:.0f}/s, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
