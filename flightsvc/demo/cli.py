"""``flightsvc demo``: asks, counts, prints, and ends by itself."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flightsvc.demo import report
from flightsvc.demo.load import HOST, ask_at_once
from flightsvc.demo.samples import DIFFERENT, IDENTICAL, SAMPLES, Sample
from flightsvc.demo.service import WORKERS, DemoFailed, DemoService
from flightsvc.demo.signals import orderly_end
from flightsvc.demo.tally import Calls, Round, broken_promises
from flightsvc.model_server.process import ModelServerProcess

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

#: how often the first answer is asked about in each round
TIMES = 50
#: how long the model server thinks, in ms
MODEL_MS = 1_500


def add_parser(subparsers: Subparsers) -> None:
    """Add the sub-command; its parsed arguments carry ``run``, which takes them."""
    parser = subparsers.add_parser(
        "demo",
        help="show 50 identical and 10 different evaluations, and the few model calls they need",
        description="Starts the service on a free port, asks it, prints a table, and ends.",
    )
    parser.add_argument(
        "--mode",
        choices=("hybrid", "distributed", "local"),
        default="hybrid",
        help="how the workers coordinate; local shows what is lost without (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo; returns 0 if everything was as promised, else 1."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal that knows no Chinese
    try:
        with orderly_end():
            return _show(args.mode)
    except BrokenPipeError:  # whoever read has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (DemoFailed, OSError, RuntimeError) as problem:
        _complain([str(problem)], getattr(problem, "log", ""))
        return 1


def _show(mode: str) -> int:
    """The demo from its first line to its last; returns the exit code."""
    _say("flightsvc demo: starting a model server and the service ...\n")
    with (
        ModelServerProcess(_script()) as model,
        DemoService(model.base_url, {"FLIGHTSVC_MODE": mode}) as service,
    ):
        _introduce(service, mode)
        rounds = [_ask(name, service, model) for name in ("at once", "the same again")]
        asked = [each for one in rounds for each in one.asked]
        served_by = service.served_by({each.request_id for each in asked})
        _say(report.table(rounds, served_by), report.legend(rounds), report.excerpt(asked))
        _say(report.savings(rounds, MODEL_MS / 1000))
        broken = list(broken_promises(rounds))
        if broken:
            _complain(broken, service.last_words())
    return 1 if broken else 0


def _ask(name: str, service: DemoService, model: ModelServerProcess) -> Round:
    """One round: all requests at once, and how often the model was called for them."""
    before: Calls = model.stats()["by_rule"]
    try:
        asked = ask_at_once(service.port, _requests(), name.replace(" ", "-"))
    except OSError as problem:
        raise DemoFailed(f"{name}: no connection: {problem}", service.last_words()) from problem
    after: Calls = model.stats()["by_rule"]
    return Round(name, asked, {rule: after[rule] - before.get(rule, 0) for rule in after})


def _requests() -> list[Sample]:
    """What is sent in each round: the different ones spread among the identical ones."""
    requests = [IDENTICAL] * TIMES
    for number, sample in enumerate(DIFFERENT):
        requests.insert(number * (TIMES // len(DIFFERENT) + 1), sample)
    return requests


def _script() -> dict[str, Any]:
    """The model server's script: a rule for each sample, so that its calls are counted apart."""
    behave = {"answer": "evaluation", "latency_ms": MODEL_MS}
    rules = [
        {"name": each.name, "match": {"last_user_contains": each.mark}, "behave": behave}
        for each in SAMPLES
    ]
    return {"rules": rules, "default": behave}


def _introduce(service: DemoService, mode: str) -> None:
    valkey = "no coordination" if mode == "local" else "an embedded Valkey"
    _say(
        f"  service   http://{HOST}:{service.port}, {WORKERS} gunicorn workers, {valkey}\n"
        f"  model     a scripted server that takes {MODEL_MS / 1000:g} s a call and counts them\n"
        f"  question  one of an interview, {len(SAMPLES)} answers to it in Chinese and English\n"
        f"  load      {TIMES} requests for one answer, {len(DIFFERENT)} for others; "
        "then the same again\n"
    )


def _say(*texts: str) -> None:
    print(*texts, sep="\n", flush=True)


def _complain(reasons: Sequence[str], log: str) -> None:
    """One line a reason, the first first; then what the service said last."""
    for reason in reasons:
        print(report.one_line(f"flightsvc demo: {reason}"), file=sys.stderr)
    if log:
        print(f"The service's last words:\n{log}", file=sys.stderr)
