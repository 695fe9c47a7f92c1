"""``@flights.coalesce``: a function whose equal calls are made once."""

from __future__ import annotations

import gevent
import pytest

from flightsvc.errors import CallFailed, WaitTimeout
from tests.flight.conftest import Worker


def test_equal_calls_at_once_are_one_and_keep_their_arguments(worker: Worker) -> None:
    made: list[tuple[str, int]] = []

    def score(answer: str, *, question: int = 0) -> dict[str, object]:
        """Scores an answer."""
        made.append((answer, question))
        gevent.sleep(0.1)
        return {"answer": answer, "question": question}

    def key(answer: str, *, question: int = 0) -> tuple[int, str]:
        return question, answer

    joined = [worker().coalesce("scoring", key=key)(score) for _ in range(2)]
    flying = [
        gevent.spawn(joined[n % 2], answer, question=n % 3)
        for n in range(30)
        for answer in ("one", "two")
    ]
    gevent.joinall(flying, raise_error=True)
    assert sorted(made) == sorted((answer, q) for answer in ("one", "two") for q in range(3))
    assert flying[0].value == {"answer": "one", "question": 0}
    assert (joined[0].__name__, joined[0].__doc__) == ("score", "Scores an answer.")


def test_a_key_of_one_part_a_tenant_and_a_deadline(worker: Worker) -> None:
    one = worker()
    made: list[str] = []

    def score(answer: str) -> str:
        made.append(answer)
        gevent.sleep(0.2)
        return answer.upper()

    for tenant in ("a", "b"):
        joined = one.coalesce("scoring", key=lambda answer: answer, tenant=tenant)(score)
        assert joined("text") == "TEXT"
    assert made == ["text", "text"]
    hasty = one.coalesce("scoring", key=lambda answer: answer, deadline_s=0.01)(score)
    with pytest.raises(WaitTimeout):
        hasty("other")


def test_what_the_function_raises_is_the_cause(worker: Worker) -> None:
    @worker().coalesce("scoring", key=lambda answer: answer)
    def score(answer: str) -> int:
        return int(answer)

    assert score("12") == 12
    with pytest.raises(CallFailed) as caught:
        score("twelve")
    assert isinstance(caught.value.__cause__, ValueError)
    assert "twelve" not in str(caught.value)


def test_the_answer_is_a_copy_for_each_caller(worker: Worker) -> None:
    @worker().coalesce("scoring", key=lambda: "the only one")
    def points() -> list[int]:
        return [1, 2]

    points().append(3)
    assert points() == [1, 2]
