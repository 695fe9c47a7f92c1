"""Looking up where the data is: once for all who want to know, and never for long."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from queue import Empty
from typing import Any, TypeVar

import gevent
import redis.exceptions as upstream
from gevent.event import AsyncResult
from gevent.queue import SimpleQueue

T = TypeVar("T")
#: what a look may fail with
Trouble = upstream.RedisError | OSError

#: Time in seconds between two looks, however many want one.
PAUSE_S = 0.1


class Refresh:
    """A look that one greenlet takes, and any number may want or wait for.

    :param look: takes it; raises :data:`Trouble` if it saw nothing.
    :param patience_s: longest time in seconds that anybody waits for it.
    """

    def __init__(self, look: Callable[[], None], patience_s: float) -> None:
        self._look = look
        self._patience_s = patience_s
        self._wanted = False
        self._outcome: AsyncResult[Trouble | None] = AsyncResult()
        self._greenlet: gevent.Greenlet[..., Any] | None = None

    def soon(self) -> None:
        """See to it that a look is taken from now on; returns at once."""
        self._wanted = True
        if self._greenlet is None:
            self._greenlet = gevent.spawn(self._run)

    def wait(self) -> None:
        """Wait for the end of a look.

        :raises redis.exceptions.RedisError: it saw nothing, or takes too long.
        """
        outcome = self._outcome
        self.soon()
        try:
            trouble = outcome.get(timeout=self._patience_s)
        except gevent.Timeout:
            raise upstream.TimeoutError("looking for the master takes too long") from None
        if trouble is not None:
            raise trouble

    def close(self) -> None:
        """Stop looking."""
        if self._greenlet is not None:
            self._greenlet.kill(timeout=1)

    def _run(self) -> None:
        try:
            while self._wanted:
                self._wanted = False
                trouble = self._try()
                outcome, self._outcome = self._outcome, AsyncResult()
                outcome.set(trouble)
                gevent.sleep(PAUSE_S)
        finally:
            self._greenlet = None

    def _try(self) -> Trouble | None:
        try:
            self._look()
        except (upstream.RedisError, OSError) as error:
            return error
        return None


def first_answers(questions: Sequence[Callable[[], T]], enough: int, within_s: float) -> list[T]:
    """Ask all side by side, and take the first answers.

    Those that come later are left alone: their own time-outs end them.

    :param enough: how many answers to wait for.
    :param within_s: time in seconds after which fewer are enough.
    :raises redis.exceptions.RedisError: there is none; the last error, or a time-out.
    """
    news: SimpleQueue[tuple[T | None, Trouble | None]] = SimpleQueue()
    for question in questions:
        gevent.spawn(_ask, question, news)
    answers: list[T] = []
    trouble: Trouble = upstream.TimeoutError("nobody answers")
    until = time.monotonic() + within_s
    for _ in questions:
        try:
            answer, error = news.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            break
        if error is not None:
            trouble = error
            continue
        answers.append(answer)  # type: ignore[arg-type]
        if len(answers) >= enough:
            break
    if not answers:
        raise trouble
    return answers


def _ask(question: Callable[[], T], news: SimpleQueue[tuple[T | None, Trouble | None]]) -> None:
    try:
        news.put((question(), None))
    except (upstream.RedisError, OSError) as error:
        news.put((None, error))
