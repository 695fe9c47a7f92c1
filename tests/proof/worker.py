"""A worker in a process of its own that asks all the time, and writes down what happens.

Reads lines: ``stop`` (ask no more, say ``stopped`` when all callers are gone), ``ask <question>``
(one caller; say ``asked`` when it has its end).
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

import gevent
from gevent.fileobject import FileObject
from gevent.pool import Group

from flightsvc.flight import FlightKey, SingleFlight
from tests.proof.history import Journal
from tests.proof.logged import LoggedCaller, LoggedModel, log_all

#: a program for :func:`tests.processes.run_python`
PROGRAM = """
from gevent import monkey; monkey.patch_all()
from tests.proof.worker import main; main()
"""

#: New questions a second, the same in all workers at a time.
PACE = 3.0


class Asking:
    """Callers who come at random, until told to stop.

    :param moody: whether the model fails at times, and callers refuse replays at times.
    """

    def __init__(
        self, flights: SingleFlight, journal: Journal, name: str, seed: int, *, moody: bool
    ) -> None:
        self._flights = flights
        self._journal = journal
        self._name = name
        self._moody = moody
        self._rng = random.Random(seed)
        self._model = LoggedModel(journal, name, random.Random(seed), moody=moody)
        self._callers = Group()
        self._count = 0
        self._coming = gevent.spawn(self._come)

    def stop(self) -> None:
        """Nobody comes any more; returns when all have gone."""
        self._coming.kill()
        self._callers.join()

    def ask(self, question: str) -> None:
        """One caller, now."""
        self._caller().ask(self._flights, FlightKey("scoring", question), self._model, 10.0)

    def _come(self) -> None:
        while True:
            gevent.sleep(self._rng.uniform(0.0, 0.06))
            number = int(time.monotonic() * PACE) - self._rng.choice([0, 0, 0, 1, 2])
            key = FlightKey("scoring", "random", number)
            deadline_s = self._rng.uniform(0.2, 3.5) if self._moody else 10.0
            replay = not self._moody or self._rng.random() > 0.1
            self._callers.spawn(
                self._caller().ask, self._flights, key, self._model, deadline_s, replay=replay
            )

    def _caller(self) -> LoggedCaller:
        self._count += 1
        return LoggedCaller(self._journal, f"{self._name}/{self._count}")


def say(what: str) -> None:
    sys.stdout.write(what + "\n")
    sys.stdout.flush()


def main() -> None:
    """``worker(name, url, journal, seed, moody, settings as JSON)``."""
    name, url, path, seed, moody, settings = sys.argv[1:7]
    given: dict[str, Any] = json.loads(settings)
    flights = SingleFlight.from_url(url, namespace="proof", **given)
    journal = Journal(path, name)
    log_all(flights, journal)
    asking = Asking(flights, journal, name, int(seed), moody=moody == "moody")
    say("ready")
    for line in FileObject(sys.stdin.fileno(), "r", close=False):
        what, _, question = line.strip().partition(" ")
        if what == "stop":
            asking.stop()
            say("stopped")
        elif what == "ask":
            asking.ask(question)
            say("asked")
    flights.close()
