"""A question's way, told step by step as server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from queue import Empty
from typing import Any, Final

import gevent
from flask import Response, stream_with_context
from gevent.queue import SimpleQueue

from flightsvc.errors import FlightSvcError
from flightsvc.flight.result import FlightResult
from flightsvc.flight.state import FlightState
from flightsvc.interview.asked import AskedQuestion
from flightsvc.interview.progress import LOCKED, RECEIVED, RUNNING, STORED, WAITING
from flightsvc.web.asking import Asking
from flightsvc.web.extension import Extension
from flightsvc.web.language import language
from flightsvc.web.render import body_of, event, render_events
from flightsvc.web.routes import to_problem

#: time in s between two looks at a flight that another worker has
LOOK_S = 1.0
#: silence in s after which a comment says that the line is alive
KEEP_ALIVE_S = 10.0

#: a flight goes forward only
ORDER: Final = (RECEIVED, LOCKED, WAITING, RUNNING, STORED)
END: Final = "end"


class ProgressStream:
    """One caller's view of one flight.

    The question is asked in a greenlet of its own; a caller that leaves stops waiting, and the
    flight goes on.
    """

    def __init__(self, service: Extension, question: AskedQuestion[Any], mine: Asking) -> None:
        self._service = service
        self._question = question
        self._trace, self._facts = mine.trace, mine.facts
        self._language = language()
        self._began = time.monotonic()
        self._at = -1

    def response(self) -> Response:
        """It as a response, which begins at once."""
        events = stream_with_context(self._events())
        return render_events(events, {"Flight-Id": self._question.key.flight_id})

    def _events(self) -> Iterator[bytes]:
        yield self._step(RECEIVED)
        flight_id, progress = self._question.key.flight_id, self._question.tools.progress
        with progress.watch(flight_id) as steps:
            asking = gevent.spawn(self._ask)
            asking.link(lambda _: steps.put(END))
            try:
                yield from self._until_end(steps)
                yield self._end(asking.get())
            finally:
                asking.kill(block=False)

    def _ask(self) -> FlightResult | Exception:
        try:
            return self._question.answer(self._trace, self._facts)
        except Exception as error:
            return error

    def _until_end(self, steps: SimpleQueue[str]) -> Iterator[bytes]:
        said_at = time.monotonic()
        while True:
            step: str | None = None
            try:
                step = steps.get(timeout=LOOK_S)
            except Empty:
                step = self._elsewhere()
            if step == END:
                return
            if step is not None and ORDER.index(step) > self._at:
                said_at = time.monotonic()
                yield self._step(step)
            elif time.monotonic() - said_at > KEEP_ALIVE_S:
                said_at = time.monotonic()
                yield b": the flight goes on\n\n"

    def _elsewhere(self) -> str | None:
        """How far the flight is, for all that Redis knows."""
        try:
            view = self._service.flights.inspect(self._question.key.flight_id)
        except FlightSvcError:
            return None
        if view is None:
            return None
        return {FlightState.PENDING: WAITING, FlightState.RUNNING: RUNNING}.get(view.state)

    def _step(self, step: str) -> bytes:
        self._at = ORDER.index(step)
        age_ms = round(1000 * (time.monotonic() - self._began))
        return event(step, {"flight_id": self._question.key.flight_id, "age_ms": age_ms})

    def _end(self, end: FlightResult | Exception) -> bytes:
        """The answer, or the problem that a plain request would have got."""
        if isinstance(end, FlightResult):
            told = {
                "flight_id": end.flight_id,
                "role": end.role,
                "fence": end.fence,
                "fallback": end.fallback,
                "answer": json.loads(body_of(end, self._language)),
            }
            return event(STORED if end.fallback is None else "fallback", told)
        return event("error", json.loads(to_problem(end, self._service).get_data()))
