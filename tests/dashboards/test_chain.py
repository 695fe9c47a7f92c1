"""Known traffic through the real service; the same numbers come back from Graphite.

What is counted here by asking, by the model server and by Graphite must be equal. Nothing waits
for a time: the service has ended, so all is sent; a mark that follows it tells when all has come.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import gevent
import pytest

from dashboards import for_graphite
from dashboards.boards import boards
from dashboards.chain import Chain
from flightsvc.model_server.process import ModelServerProcess
from tests.processes import wait_until
from tests.support.service import Reply, Service

#: the programs may have to be installed first
pytestmark = pytest.mark.timeout(420)

MODEL = "chain-model"
#: different questions, and how often each is asked at once, and once more afterwards
QUESTIONS, TIMES = 3, 10
#: of one call, and the same in millionths
PRICE, MILLIONTHS = 0.25, 250_000
REFUSED, BROKEN = "(refused)", "(broken)"
SCRIPT: dict[str, Any] = {
    "rules": [
        {"name": "refused", "match": {"body_contains": REFUSED}, "behave": {"status": 400}},
        {"name": "broken", "match": {"body_contains": BROKEN}, "behave": {"status": 500}},
    ],
    "default": {"latency_ms": 300, "answer": "evaluation"},
}
PATH = "/v1/interviews/chain/evaluations"
C, T, G = "stats.counters.flightsvc", "stats.timers.flightsvc", "stats.gauges.flightsvc"


class Run(NamedTuple):
    """What was asked, and what the model server saw.

    :param codes: of the errors that callers got.
    :param alive: gauges, as they were while the service ran.
    """

    replies: list[Reply]
    codes: Counter[str]
    model: dict[str, Any]
    alive: dict[str, list[float]]

    @property
    def good(self) -> list[Reply]:
        return [reply for reply in self.replies if reply.status == 200]


def ask(service: Service, number: int, mark: str = "") -> Reply:
    said = {
        "question_number": number,
        "question": "What does a database index cost?",
        "answer": f"Space, and every write keeps it in order. {number} {mark}",
    }
    return service.post(PATH, said)


def at_once(service: Service, numbers: list[int]) -> list[Reply]:
    asking = [gevent.spawn(ask, service, number) for number in numbers]
    return [one.get() for one in gevent.joinall(asking)]


def landed(chain: Chain) -> bool:
    """Whether both workers have said that no flight is in the air any more."""
    flights = chain.render([f"{G}.flight.in_flight.*"])
    return [values[-1] for values in flights.values()] == [0, 0]


@pytest.fixture(scope="module")
def run(chain: Chain) -> Iterator[Run]:
    with ModelServerProcess(SCRIPT) as model:
        settings = {
            "FLIGHTSVC_PROVIDER": "openai",
            "FLIGHTSVC_OPENAI_BASE_URL": model.base_url,
            "FLIGHTSVC_OPENAI_MODEL": MODEL,
            "FLIGHTSVC_STATSD_HOST": "127.0.0.1",
            "FLIGHTSVC_STATSD_PORT": str(chain.statsd_port),
            "FLIGHTSVC_STATSD_FLUSH_MS": "200",
            "FLIGHTSVC_STAGES__EVALUATION__CALL_PRICE": str(PRICE),
        }
        numbers = list(range(1, QUESTIONS + 1)) * TIMES
        with Service(settings) as service:
            replies = [*at_once(service, numbers), *at_once(service, numbers)]
            replies += [ask(service, 7, REFUSED), ask(service, 8, BROKEN)]
            wait_until(lambda: landed(chain), 30)
            alive = chain.render([f"{G}.*.*.*", f"{G}.gunicorn.workers"])
            stats = model.stats()
        chain.settle()  # all that the service sent last
        errors = [reply.json()["code"] for reply in replies if reply.status != 200]
        yield Run(replies, Counter(errors), stats, alive)


def test_callers_answers_and_calls_are_those_that_were_seen(chain: Chain, run: Run) -> None:
    asked, made = len(run.replies), len(run.good)
    assert made == 2 * QUESTIONS * TIMES
    assert chain.total(f"{C}.flight.callers.evaluation.count") == asked
    assert chain.total(f"{C}.flight.answers.evaluation.*.count") == made
    roles = Counter(reply.headers["flight-role"] for reply in run.good)
    for role, count in roles.items():
        assert chain.total(f"{C}.flight.answers.evaluation.{role}.count") == count, role
    assert roles["owner"] == QUESTIONS
    assert chain.total(f"{C}.flight.saved.evaluation.count") == made - QUESTIONS
    assert chain.total(f"{C}.flight.calls.evaluation.count") == QUESTIONS + 2


def test_money_is_calls_at_their_price(chain: Chain, run: Run) -> None:
    saved = chain.total(f"{C}.flight.saved_money.evaluation.count")
    assert saved == MILLIONTHS * (len(run.good) - QUESTIONS)
    spent = chain.total(f"{C}.guard.spent_money.evaluation.count")
    assert spent == MILLIONTHS * run.model["calls"]


def test_scripted_failures_come_back_by_code(chain: Chain, run: Run) -> None:
    assert sum(run.codes.values()) == 2
    for code, count in run.codes.items():
        assert chain.total(f"{C}.flight.errors.evaluation.{code}.count") == count, code
    assert chain.total(f"{C}.flight.errors.evaluation.*.count") == 2
    failed = f"{C}.provider.errors.openai.{MODEL}.*.count"
    by_rule = run.model["by_rule"]
    assert chain.total(failed) == by_rule["refused"] + by_rule["broken"]


def test_attempts_and_retries_are_those_that_the_model_saw(chain: Chain, run: Run) -> None:
    calls, by_rule = run.model["calls"], run.model["by_rule"]
    assert by_rule["refused"] == 1
    assert by_rule["broken"] > 1
    assert chain.total(f"{C}.guard.attempts.evaluation.*.count") == calls
    assert chain.total(f"{C}.guard.retries.evaluation.count") == by_rule["broken"] - 1
    assert chain.total(f"{T}.provider.time.openai.{MODEL}.count") == calls


def test_gunicorn_counts_the_same_answers_beside_them(chain: Chain, run: Run) -> None:
    requests = chain.total(f"{C}.gunicorn.requests.count")
    assert requests >= len(run.replies)
    assert chain.total(f"{C}.gunicorn.request.status.*.count") == requests
    assert chain.total(f"{T}.gunicorn.request.duration.count") == requests
    assert chain.total(f"{C}.http.answers.*.*.count") == len(run.replies)
    for status, count in Counter(reply.status for reply in run.replies).items():
        assert chain.total(f"{C}.http.answers.evaluations.{status}.count") == count, status
        if status != 200:  # the probe of /readyz is among gunicorn's, and in no route's count
            assert chain.total(f"{C}.gunicorn.request.status.{status}.count") == count, status


def test_each_worker_has_gauges_of_its_own(run: Run) -> None:
    for worker in ("0", "1"):
        assert set(run.alive[f"{G}.coordination.up.{worker}"]) == {1}
        assert min(run.alive[f"{G}.process.memory.{worker}"]) > 10_000_000
        assert min(run.alive[f"{G}.process.hub_lag.{worker}"]) >= 0
    assert run.alive[f"{G}.gunicorn.workers"][-1] == 2


def test_graphite_draws_every_panel_and_keeps_every_board(chain: Chain, run: Run) -> None:
    size = {"width": 300, "height": 200, "from": "-5min"}
    for board in boards(window="10s"):
        for panel in board.panels:
            drawn = chain.picture({**for_graphite.graph(panel, "light"), **size})
            assert drawn.startswith(b"\x89PNG"), panel.title
            for line in panel.lines:
                chain.render([line.target])
        state = for_graphite.state(board, "dark", 10)
        chain.keep_dashboard(state)
        kept = json.loads(chain.get(f"/dashboard/load/{state['name']}"))["state"]
        assert kept == state
    assert b"<script" in chain.get("/dashboard/")


@pytest.mark.parametrize(
    ("board", "title"),
    [
        ("flightsvc-savings", "How answers came about"),
        ("flightsvc-health", "Lateness: from the model's answer to the caller's, 95 %"),
        ("flightsvc-capacity", "Memory, by worker"),
    ],
)
def test_panels_show_the_run(chain: Chain, run: Run, board: str, title: str) -> None:
    panels = {(own.name, one.title): one for own in boards(window="10s") for one in own.panels}
    for line in panels[board, title].lines:
        if line.name not in ("replay", "local"):
            values = [one for each in chain.render([line.target]).values() for one in each]
            assert max(values) > 0, line


def test_a_takeover_is_seen_where_the_dashboard_looks(chain: Chain) -> None:
    held = {"default": {"gate": "go", "answer": "evaluation"}}
    with ModelServerProcess(held) as model:
        settings = {
            "FLIGHTSVC_PROVIDER": "openai",
            "FLIGHTSVC_OPENAI_BASE_URL": model.base_url,
            "FLIGHTSVC_OPENAI_MODEL": MODEL,
            "FLIGHTSVC_STATSD_HOST": "127.0.0.1",
            "FLIGHTSVC_STATSD_PORT": str(chain.statsd_port),
            "FLIGHTSVC_STATSD_PREFIX": "takeover",
            "FLIGHTSVC_HEARTBEAT_MS": "300",
            "FLIGHTSVC_TAKEOVER_DETECT_MS": "1500",
        }
        with Service(settings, workers=1) as service:
            first = gevent.spawn(ask, service, 1)
            model.until(open_calls=1)
            for pid in service.worker_pids():
                os.kill(pid, signal.SIGKILL)
            with pytest.raises(http.client.HTTPException):
                first.get()
            model.open_gate("go")
            assert ask(service, 1).headers["flight-role"] == "owner"
    chain.settle()
    panels = {one.title: one for own in boards("takeover", "1min") for one in own.panels}
    lines = {line.name: line for line in panels["Takeovers and lost flights"].lines}
    assert max(max(each) for each in chain.render([lines["takeovers"].target]).values()) == 1
