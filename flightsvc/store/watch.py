"""One greenlet a worker reads what all workers share, so that no request has to.

It also sends what gathers in the worker meanwhile (its *duties*), one at a time: all of this
takes at most one of the worker's places at Redis. While Redis is out of reach what was last known
holds.
"""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import gevent
from gevent.event import Event

from flightsvc.metrics import SHARED_AGE, Metrics
from flightsvc.store.errors import StoreError
from flightsvc.store.modules import Flag, Pause, RollBack, Snapshot
from flightsvc.store.switches import Switches

log = logging.getLogger(__name__)

#: time between two looks, in s: with a round trip it stays well below a second
LOOK_S = 0.5
#: shortest time between two rounds, in s: what comes together is sent together
ROUND_S = 0.05
#: longest time that the last round takes, in s
CLOSE_S = 1.0


class Duty(Protocol):
    """What gathers in a worker and has to be sent."""

    @property
    def every_s(self) -> float:
        """Shortest time between two sendings, in s."""

    def pending(self) -> bool:
        """Whether there is something to send."""

    def send(self) -> None:
        """Send it, or a part of it.

        :raises StoreError: it could not be sent; what is left is asked for again.
        """


class SharedWatch:
    """What holds for all workers, as dict look-ups.

    It begins at its first use in a process; a process that forks begins anew.

    :param switches: what is read.
    :param shares: whether there is a Redis at all.
    """

    def __init__(self, switches: Switches, metrics: Metrics, *, shares: bool = True) -> None:
        self._switches = switches
        self._shares = shares
        self._duties: Sequence[Duty] = ()
        self._sent: dict[Duty, float] = {}
        self._snapshot = Snapshot()
        self._tickets = itertools.count(1)
        self._newest = 0
        self._look_at = 0.0
        self._pid = 0
        self._woken = Event()
        self._greenlet: gevent.Greenlet[..., Any] | None = None
        self._on_forgotten: Callable[[str], None] = lambda _flight_id: None
        self._trouble = ""  # what the last look failed with
        #: whether Redis answers, as far as is known
        self.up = False
        metrics.gauge(SHARED_AGE, self.age_s)

    # -- what requests ask ---------------------------------------------------------------------

    def paused(self, stage: str, provider: str = "") -> Pause | None:
        """Why calls of this stage, or to this provider, are not taken now; None if they are."""
        paused = self.snapshot.paused
        if not paused:
            return None
        return paused.get(f"stage:{stage}") or paused.get(f"provider:{provider}")

    def rolled_back(self, stage: str) -> RollBack | None:
        """Why this stage asks its former model; None if it does not."""
        return self.snapshot.rolled_back.get(f"stage:{stage}")

    def needs_person(self, module: str) -> Flag | None:
        """The flag of a module, by its full name."""
        return self.snapshot.flags.get(module)

    def breaker_open(self, target: tuple[str, str]) -> float | None:
        """Seconds for which another worker's breaker of this provider and model is open."""
        open_until = self.snapshot.open_until
        until = open_until.get("/".join(target)) if open_until else None
        left_s = until - time.monotonic() if until is not None else 0.0
        return left_s if left_s > 0 else None

    def forgotten_ms(self, mark: str) -> int:
        """When all were told to forget it, in ms since 1970 by Redis's clock; 0: not lately."""
        return self.snapshot.forgotten.get(mark, 0)

    @property
    def snapshot(self) -> Snapshot:
        """All that is known; at most about half a second old while Redis answers."""
        if self._pid != os.getpid():
            self.start()
        return self._snapshot

    def age_s(self) -> float:
        """How old that is, in s; 0 before the first look."""
        read_at = self._snapshot.read_at
        return time.monotonic() - read_at if read_at else 0.0

    # -- what happens beside them --------------------------------------------------------------

    def attend(self, *duties: Duty) -> None:
        """See to these as well, in this order."""
        self._duties = (*self._duties, *duties)

    def on_forgotten(self, listener: Callable[[str], None]) -> None:
        """Have ``listener`` hear of each flight that nobody may remember; it must not wait."""
        self._on_forgotten = listener

    def start(self) -> None:
        """Begin to read in this process; returns at once."""
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        self._woken, self._look_at = Event(), 0.0
        if self._shares:
            self._greenlet = gevent.spawn(self._run, self._pid)

    def begin(self) -> None:
        """Look for the first time, then go on in the background."""
        if self._shares and self._pid != os.getpid():
            self.start()
            with suppress(StoreError):  # nothing is known yet, and the next look is due
                self.refresh()

    def wake(self) -> None:
        """There is something to send."""
        self.start()
        self._woken.set()

    def refresh(self) -> Snapshot:
        """Look now.

        :raises StoreError: Redis could not be asked; what was last known stays.
        """
        self._look_at = time.monotonic() + LOOK_S
        ticket = next(self._tickets)
        try:
            found = self._switches.snapshot()
        except StoreError as error:
            self._failed(error)
            raise
        if self._trouble:
            log.warning("what the workers share is read again")
        self.up, self._trouble = True, ""
        if ticket > self._newest:  # a later look may have been answered before
            before, self._newest, self._snapshot = self._snapshot, ticket, found
            _tell_changes(before, found)
            new = found.forgotten.items() - before.forgotten.items() if before.read_at else ()
            for flight_id, _ in new:  # what was told before the first look is none of ours
                self._on_forgotten(flight_id)
        return self._snapshot

    def close(self) -> None:
        """Stop; what still waits is sent, if Redis is there, within about a second."""
        if self._pid != os.getpid():
            return
        if self._greenlet is not None:
            self._greenlet.kill(timeout=CLOSE_S)
        timeout = gevent.Timeout.start_new(CLOSE_S)
        try:
            while self.up and self._send_due(at_once=True):
                pass
        except gevent.Timeout as over:
            if over is not timeout:
                raise
        finally:
            timeout.close()

    def _run(self, pid: int) -> None:
        while os.getpid() == pid:
            try:
                self._round()
            except Exception:
                log.exception("reading what the workers share failed; the next look is due")
            self._woken.wait(self._idle_s())
            self._woken.clear()
            gevent.sleep(ROUND_S)

    def _round(self) -> None:
        if time.monotonic() >= self._look_at:
            try:
                self.refresh()
            except StoreError:
                return
        if self.up:
            self._send_due()

    def _send_due(self, *, at_once: bool = False) -> bool:
        """Whether something was sent."""
        sent = False
        for duty in self._duties:
            now = time.monotonic()
            is_due = at_once or now >= self._sent.get(duty, 0.0) + duty.every_s
            if not is_due or not duty.pending():
                continue
            self._sent[duty] = now
            try:
                duty.send()
                sent = True
            except StoreError as error:  # a refused write says nothing about the next one
                if error.unreachable:
                    self._failed(error)
                    break
        return sent

    def _idle_s(self) -> float:
        return max(0.0, self._look_at - time.monotonic() - ROUND_S)

    def _failed(self, error: StoreError) -> None:
        if error.kind != self._trouble:
            log.warning("%s: switches hold as they were last known", error)
        self.up, self._trouble = False, error.kind


def _tell_changes(before: Snapshot, now: Snapshot) -> None:
    """A worker's log says from when on it took no calls, and why."""
    for module in now.paused.keys() - before.paused.keys():
        pause = now.paused[module]
        log.warning("%s is paused by %s: %s", module, pause.by, pause.reason)
    for module in before.paused.keys() - now.paused.keys():
        log.warning("%s takes calls again", module)
