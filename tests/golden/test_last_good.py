"""The last good answer: whose it is, and what is done meanwhile to have a new one."""

from __future__ import annotations

import json
from typing import Any

import gevent
import pytest

from flightsvc.errors import CheckedFailure
from flightsvc.interview.refresh import Refresher
from flightsvc.providers.base import Provider
from tests.golden.scene import ASKED, Scene, Supplier
from tests.golden.telling import Make
from tests.processes import wait_until

TOKENS = {"token-acme": "acme", "token-beta": "beta"}


def ask(scene: Scene, token: str, answer: str, session: str = "s1") -> tuple[int, dict[str, Any]]:
    reply = scene.app.test_client().post(
        f"/v1/interviews/{session}/evaluations",
        json={**ASKED, "answer": answer},
        headers={"Authorization": f"Bearer {token}"},
    )
    return reply.status_code, json.loads(reply.data)


def is_kept(scene: Scene) -> None:
    """What was remembered has reached Redis."""
    scene.worker.shared.watch.wake()
    wait_until(lambda: not scene.worker.shared.last_good.pending())


@pytest.mark.parametrize("shared", [True, False], ids=["redis", "local"])
def test_one_tenant_never_gets_another_s(make: Make, shared: bool) -> None:
    """The same session, the same question: from the worker's own memory, and from Redis."""
    where: dict[str, Any] = {} if shared else {"mode": "local", "url": ""}
    scene = make(api_tokens=TOKENS, **where)
    assert ask(scene, "token-acme", "Acme's own words.")[0] == 200
    if shared:
        is_kept(scene)
    worker = make(api_tokens=TOKENS) if shared else scene
    worker.supply("AI_QA_UNREACHABLE")

    status, theirs = ask(worker, "token-beta", "Beta's words.")
    assert (status, theirs["code"]) == (503, "AI_QA_UNREACHABLE")
    assert "score" not in theirs
    status, own = ask(worker, "token-acme", "Other words of Acme's.")
    assert (status, own["fallback"], own["warnings"]) == (200, "last_good", ["stale_answer"])
    # nor does a tenant whose name runs into the session's
    assert ask(worker, "token-acme", "x", session="acme")[0] == 503


class Back(Supplier):
    """A knowledge base that is away at first.

    :param then: answers after so many calls.
    """

    def __init__(self, away: int, then: Provider) -> None:
        super().__init__(lambda: CheckedFailure("AI_QA_UNREACHABLE"))
        self.away = away
        self.then = then

    def complete(self, request: Any, timeout_s: float) -> Any:
        if self.calls >= self.away:
            self.calls += 1
            return self.then.complete(request, timeout_s)
        return super().complete(request, timeout_s)


def away(scene: Scene, calls: int, tries_s: tuple[float, ...]) -> Back:
    base = Back(calls, scene.worker.models.primary)
    scene.supply(base)
    tools = scene.worker.invoker._tools
    object.__setattr__(tools, "refresher", Refresher(tries_s))
    return base


def test_meanwhile_a_new_answer_is_fetched_for_who_asks_next(make: Make) -> None:
    scene = make()
    scene.ask()
    is_kept(scene)
    base = away(scene, 2, (0.2, 0.2, 0.2))

    stale = scene.ask(answer="Another answer.")
    assert (stale.status_code, stale.headers["Flight-Fallback"]) == (200, "last_good")
    wait_until(lambda: base.calls == 3)  # the asker's, and two tries
    gevent.sleep(0.1)
    # and nobody's request made the call that brought the new one
    fresh = scene.ask(answer="Another answer.")
    assert fresh.headers["Flight-Role"] == "l1"
    assert "fallback" not in json.loads(fresh.data)
    gevent.sleep(0.4)
    assert base.calls == 3


def test_it_is_tried_a_few_times_only_and_once_for_all_who_ask(make: Make) -> None:
    scene = make()
    scene.ask()
    is_kept(scene)
    base = away(scene, 1_000, (0.1, 0.1))
    scene.ask(answer="Another answer.")
    calls = base.calls
    for _ in range(3):
        scene.ask(answer="Another answer.")
    gevent.sleep(0.6)
    assert base.calls <= calls + 3 + 2


def test_a_pause_holds_for_it_too(make: Make) -> None:
    scene = make()
    scene.ask()
    is_kept(scene)
    base = away(scene, 1, (0.3,))
    assert scene.ask(answer="Another answer.").headers["Flight-Fallback"] == "last_good"
    scene.worker.shared.switches.pause("evaluation", by="ann", reason="x")
    scene.worker.shared.watch.refresh()
    gevent.sleep(0.6)
    assert base.calls == 1
