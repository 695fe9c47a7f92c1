"""Runs every measurement and writes docs/benchmarks.md with its chart.

python -m benchmarks.report
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import date

from benchmarks import cost, gateway, http_peers, lateness, replay, servers, small
from flightsvc import __version__

DOCS = servers.ROOT / "docs"


def lateness_section(rows: list[lateness.Lateness]) -> str:
    lines = [
        "## Lateness, as a library",
        "",
        "How long after the model's end callers have their answer. The floor is the least that",
        "Python, gevent and one Redis can do: one stream waiter a process and one local event, no",
        "fence, no deadline, no failure. Two processes; the kinds take turns.",
        "",
        "`python -m benchmarks.lateness`",
        "",
        "| callers | floor p50 | flightsvc p50 | floor p99 | flightsvc p99 | ratio | errors |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.callers:,} | {row.p50['floor']:.1f} ms | {row.p50['flightsvc']:.1f} ms | "
        f"{row.p99['floor']:.1f} ms | {row.p99['flightsvc']:.1f} ms | {row.ratio:.2f} | "
        f"{row.errors} |"
        for row in rows
    ]
    return "\n".join([*lines, "", "![lateness](benchmarks.png)"])


def http_section(rows: dict[str, tuple[float, float, int]]) -> str:
    varnish = rows["Varnish"][1]
    lines = [
        "## The same over HTTP, against nginx and Varnish",
        "",
        "100 callers of one question at once, a model of 1 s, one loader, one run. flightsvc has",
        "2 gunicorn workers and judges an answer; the others answer from their cache.",
        "",
        "`python -m benchmarks.http_peers`",
        "",
        "| | p50 | p99 | p99 against Varnish | model calls |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {p50:.1f} ms | {p99:.1f} ms | {p99 / varnish:.2f} | {calls} |"
        for name, (p50, p99, calls) in rows.items()
    ]
    return "\n".join(lines)


def replay_section(got: tuple[float, float, float]) -> str:
    return "\n".join(
        [
            "## Replays from the worker's memory",
            "",
            "The evaluation route with an answer in L1, against a Flask route that returns a",
            "constant, on the same gunicorn settings; the two take turns.",
            "",
            "`python -m benchmarks.replay`",
            "",
            "| L1 replay | bare Flask route | ratio |",
            "|---|---|---|",
            f"| {got[0]:,.0f}/s | {got[1]:,.0f}/s | {got[2]:.2f} |",
        ]
    )


def gateway_section(
    first: gateway.FirstToken, crowds: list[gateway.Crowd], equals: list[gateway.Equal]
) -> str:
    lines = [
        "## The OpenAI door",
        "",
        f"A model that thinks for {gateway.THINKS_MS} ms; two workers on one Valkey. When the",
        "first chunk comes: later than in a direct call, or after asking; medians.",
        "",
        "`python -m benchmarks.gateway`",
        "",
        "| owner | follower elsewhere | late joiner, after asking | replay, after asking |",
        "|---|---|---|---|",
        f"| +{first.owner - first.direct:.1f} ms | +{first.follower - first.direct:.1f} ms | "
        f"{first.late:.1f} ms | {first.replay:.1f} ms |",
        "",
        f"One answer of {gateway.CHUNKS} chunks, up to {1000 // gateway.GAP_MS} a second, to many",
        "callers on both workers; every text is compared with the model's.",
        "",
        "| callers | texts | model calls | Valkey's writes | reads | CPU a chunk and caller "
        "| last end after the first |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.callers:,} | {row.texts} | {row.calls} | {row.writes} | {row.reads} | "
        f"{row.cpu_us:.0f} µs | {row.spread_ms:.0f} ms |"
        for row in crowds
    ]
    lines += [
        "",
        "50 equal plain callers at once, and the same again; p50. LiteLLM has its Redis cache on.",
        "",
        "| | model calls | more than the model's time | again |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {each.name} | {each.calls} | +{each.added_ms:.0f} ms | {each.replay_ms:.0f} ms |"
        for each in equals
    ]
    return "\n".join(lines)


def cost_section(rows: list[cost.Cost]) -> str:
    lines = [
        "## What a flight costs Redis",
        "",
        "One flight on two workers: an owner and a follower, whatever the number of callers.",
        "",
        "`python -m benchmarks.cost`",
        "",
        "| callers | commands | bytes to Redis | bytes from Redis |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {row.callers:,} | {row.commands} | {row.bytes_in:,} | {row.bytes_out:,} |"
        for row in rows
    ]
    return "\n".join(lines)


def small_section(rows: list[small.Packing], guard_us: float) -> str:
    lines = [
        "## Packing an answer, and the guard",
        "",
        "`python -m benchmarks.small`",
        "",
        "| answer | pack base64 / raw | unpack base64 / raw | stored base64 / raw |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {row.size:,} bytes | {row.pack_ms['base64']:.2f} / {row.pack_ms['raw']:.2f} ms | "
        f"{row.unpack_ms['base64']:.2f} / {row.unpack_ms['raw']:.2f} ms | "
        f"{row.stored['base64']:,} / {row.stored['raw']:,} bytes |"
        for row in rows
    ]
    return "\n".join([*lines, "", f"The guard adds {guard_us:.0f} µs to a call."])


def draw(rows: list[lateness.Lateness]) -> None:
    """The chart: p99 lateness by callers, floor and flightsvc side by side."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3.6), dpi=150)
    places = range(len(rows))
    for shift, kind, colour in ((-0.2, "floor", "#9aa5b1"), (0.2, "flightsvc", "#2b6cb0")):
        values = [row.p99[kind] for row in rows]
        bars = axes.bar([place + shift for place in places], values, 0.38, label=kind, color=colour)
        axes.bar_label(bars, fmt="%.1f", padding=2, fontsize=8)
    axes.set_xticks(list(places), [f"{row.callers:,} callers" for row in rows])
    axes.set_ylabel("p99 lateness, ms")
    axes.set_yscale("log")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(DOCS / "benchmarks.png")


def machine() -> str:
    cores = os.cpu_count()
    system = f"{platform.system()} {platform.machine()}"
    return f"{cores} cores, {system}, Python {platform.python_version()}"


def main() -> None:
    revision = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    late = [lateness.measure(callers) for callers in (100, 1_000, 10_000)]
    page = [
        "# Benchmarks",
        "",
        f"flightsvc {__version__} ({revision}), {date.today().isoformat()}, {machine()}; loader,",
        "model and servers share the cores. Read the ratios: times differ from machine to machine.",
        "`make bench` makes this page.",
        "",
        lateness_section(late),
        "",
        http_section(http_peers.measure(100)),
        "",
        replay_section(replay.measure()),
        "",
        gateway_section(*gateway.measure()),
        "",
        cost_section([cost.measure(callers) for callers in (1, 10, 100, 1_000, 10_000)]),
        "",
        small_section([small.packing(size) for size in small.SIZES], small.guard_us()),
        "",
    ]
    draw(late)
    text = "\n".join(page)
    (DOCS / "benchmarks.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
