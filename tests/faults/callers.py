"""Questions, and who asks them over HTTP."""

from __future__ import annotations

import os
import time
from typing import Any

import gevent

from flightsvc.interview.evaluation import EvaluationInput, flight_key
from tests.support.service import Reply, post_json

#: the model that is asked for
MODEL = "test-model"
#: no caller waits longer for an answer, in s: twice a budget, a takeover and a second
PATIENCE_S = 25


class Question:
    """One question; nobody else asks it."""

    def __init__(self, name: str = "") -> None:
        self.session = f"{name or 's'}-{os.urandom(6).hex()}"
        #: also part of what the model sees, so that its calls can be told apart
        self.body = {
            "question_number": 1,
            "question": "What is a fencing token?",
            "answer": f"A number that rises with each lease ({self.session}).",
        }

    @property
    def path(self) -> str:
        return f"/v1/interviews/{self.session}/evaluations"

    @property
    def flight_id(self) -> str:
        asked = EvaluationInput.model_validate(self.body)
        key = flight_key(self.session, asked, tenant="", provider="openai", model=MODEL)
        return key.flight_id

    def rule(self, *, first: bool = False, takes_s: float = 0.0, **behave: Any) -> dict[str, Any]:
        """A rule of the model server's script for this question's calls.

        :param first: for the first of them only.
        :param takes_s: how long the model thinks.
        """
        behave["latency_ms"] = int(takes_s * 1000)
        match: dict[str, Any] = {"last_user_contains": self.session}
        if first:
            match["nth"] = [1]
        return {"name": self.session, "match": match, "behave": behave}


class Asker:
    """Somebody who asks over HTTP, in a greenlet of his own.

    :param url: of the node.
    """

    def __init__(self, url: str, question: Question) -> None:
        self._reply: Reply | None = None
        self._error: OSError | None = None
        self.began_at = time.monotonic()
        #: when the answer or error came (monotonic)
        self.answered_at = 0.0
        self._greenlet = gevent.spawn(self._ask, url, question)

    @property
    def took_s(self) -> float:
        """From asking to the answer."""
        return self.answered_at - self.began_at

    @property
    def waits(self) -> bool:
        """Whether nothing has come yet."""
        return not self._greenlet.dead

    def reply(self, within_s: float = PATIENCE_S) -> Reply:
        """The answer, whatever its status; a broken connection is raised."""
        self._await(within_s)
        if self._error is not None:
            raise self._error
        assert self._reply is not None
        return self._reply

    def error(self, within_s: float) -> OSError:
        """How the connection broke; an answer is an assertion error."""
        self._await(within_s)
        assert self._error is not None, f"answered with {self._reply}"
        return self._error

    def _await(self, within_s: float) -> None:
        self._greenlet.join(within_s)
        assert self._greenlet.dead, f"no answer within {within_s} s"

    def _ask(self, url: str, question: Question) -> None:
        try:
            self._reply = post_json(url + question.path, question.body)
        except OSError as error:
            self._error = error
        self.answered_at = time.monotonic()


def bodies(askers: list[Asker]) -> set[bytes]:
    """The different answers that callers got; all must have one."""
    replies = [asker.reply() for asker in askers]
    assert {reply.status for reply in replies} == {200}, [reply.body for reply in replies]
    return {reply.body for reply in replies}


def roles(askers: list[Asker]) -> list[str]:
    """The callers' roles, sorted."""
    return sorted(asker.reply().headers["flight-role"] for asker in askers)


def codes(askers: list[Asker]) -> set[tuple[int, str]]:
    """How callers were refused: status and code; a temporary refusal says when to come back."""
    refused = set()
    for reply in (asker.reply() for asker in askers):
        problem = reply.json()
        refused.add((reply.status, problem["code"]))
        if reply.status == 503:
            assert int(reply.headers["retry-after"]) >= 1
    return refused


def measured(what: str, seconds: float) -> None:
    """Say a figure; ``pytest -rP`` shows it."""
    print(f"measured: {what}: {seconds * 1000:.0f} ms")
