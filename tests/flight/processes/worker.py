"""One worker in a process of its own, told what to do line by line: JSON in, JSON out.

``run``     callers ask at a common moment; ``began`` and ``ended`` say what the calls do, ``done``
            what the callers got
``counts``  what the worker has counted
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from typing import Any

import gevent
from gevent.fileobject import FileObject

from flightsvc.errors import FlightSvcError
from flightsvc.flight import FlightContext, FlightKey, SingleFlight


def say(said: str, **fields: Any) -> None:
    """One line to whoever started this."""
    sys.stdout.write(json.dumps({"said": said, **fields}) + "\n")
    sys.stdout.flush()


class Asking:
    """Callers of one question."""

    def __init__(
        self,
        *,
        tag: str,
        callers: int = 1,
        model_s: float = 0.0,
        value: Any = None,
        at: float = 0.0,
        deadline_s: float | None = None,
    ) -> None:
        self.tag = tag
        self._key = FlightKey("scoring", tag)
        self._callers = callers
        self._model_s = model_s
        self._value = value
        self._at = at
        self._deadline_s = deadline_s
        self._roles: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._values: set[bytes] = set()
        self._answered_at: list[float] = []

    def run(self, flights: SingleFlight) -> None:
        """Ask, and say what came of it."""
        callers = [gevent.spawn(self._one, flights) for _ in range(self._callers)]
        gevent.joinall(callers)
        say(
            "done",
            tag=self.tag,
            roles=self._roles,
            errors=self._errors,
            values=[json.loads(text) for text in self._values],
            answered_at=sorted(self._answered_at),
        )

    def _one(self, flights: SingleFlight) -> None:
        gevent.sleep(max(0.0, self._at - time.monotonic()))
        try:
            result = flights.run(self._key, self._call, deadline_s=self._deadline_s)
        except FlightSvcError as error:
            self._errors[error.code] += 1
            return
        self._answered_at.append(time.monotonic())
        self._roles[result.role] += 1
        self._values.add(result.json_bytes)

    def _call(self, ctx: FlightContext) -> Any:
        say("began", tag=self.tag, fence=ctx.fence)
        gevent.sleep(self._model_s)
        say("ended", tag=self.tag, fence=ctx.fence, at=time.monotonic())
        return self._value


def main() -> None:
    """``worker(url, namespace, settings as JSON)``, until the input ends."""
    url, namespace, settings = sys.argv[1:4]
    flights = SingleFlight.from_url(url, namespace=namespace, **json.loads(settings))
    say("ready", worker=flights.worker)
    for line in FileObject(sys.stdin.fileno(), "r", close=False):
        order = json.loads(line)
        do = order.pop("do")
        if do == "run":
            gevent.spawn(Asking(**order).run, flights)
        elif do == "counts":
            say("counts", counts=flights.metrics.snapshot())
    flights.close()
