"""100 callers of one question over HTTP: flightsvc against nginx's cache lock and Varnish.

    python -m benchmarks.http_peers [CALLERS]

One model, one loader, one run; the subjects take turns. How late an answer is: the time at which
its last byte arrived, less the time at which the model had ended.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import urllib.request

from benchmarks import servers

ROUNDS = 5
LATENCY_MS = 1_000


def round_of(url: str, callers: int, body: str, origin_port: int) -> tuple[list[float], int]:
    """How late each caller was, in ms and in order; and the calls that the model got."""
    before = stats(origin_port)
    command = [sys.executable, "-m", "benchmarks.loader", url, str(callers), str(callers), body]
    said = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert said["codes"] == {"200": callers}, said["codes"]
    after = stats(origin_port)
    late = [(at - after["ended"]) * 1000 for at in said["answered"]]
    return sorted(late), int(after["calls"] - before["calls"])


def stats(origin_port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{origin_port}/_ended") as answer:
        got: dict[str, float] = json.load(answer)
        return got


def question(number: int) -> str:
    """A body that nobody has sent before."""
    return json.dumps({"question_number": 1, "question": "Why?", "answer": f"Because, {number}."})


def measure(callers: int, rounds: int = ROUNDS) -> dict[str, tuple[float, float, int]]:
    """By subject: medians of p50 and p99 in ms, and the most calls in a round."""
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(servers.origin(LATENCY_MS))
        ours = stack.enter_context(
            servers.service(
                PROVIDER="openai",
                OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1",
                OPENAI_MODEL="origin",
            )
        )
        subjects = {
            "flightsvc": f"{ours}/v1/interviews/s/evaluations",
            "nginx cache lock": stack.enter_context(servers.nginx(port)),
            "Varnish": stack.enter_context(servers.varnish(port)),
        }
        got: dict[str, list[tuple[float, float, int]]] = {name: [] for name in subjects}
        for number in range(rounds + 1):
            for name, url in subjects.items():
                body = question(number) if name == "flightsvc" else ""
                address = url if body else f"{url}/{number}"
                late, calls = round_of(address, callers, body, port)
                if number:  # the first warms up
                    p99 = late[min(len(late) - 1, int(len(late) * 0.99))]
                    got[name].append((late[len(late) // 2], p99, calls))
    return {
        name: (
            statistics.median(p50 for p50, _, _ in rows),
            statistics.median(p99 for _, p99, _ in rows),
            max(calls for _, _, calls in rows),
        )
        for name, rows in got.items()
    }


def main() -> None:
    callers = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for name, (p50, p99, calls) in measure(callers).items():
        print(f"{name:18} p50 {p50:7.1f} ms  p99 {p99:7.1f} ms  model calls {calls}")


if __name__ == "__main__":
    main()
