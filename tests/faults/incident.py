"""What can happen to one request on its way."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from gevent.event import Event

from tests.faults.resp import Match


class Harm(Enum):
    """What happens to a request, or to its reply."""

    #: the request waits until it is let go
    HOLD = auto()
    #: the connection is reset, the request never arrives
    RESET = auto()
    #: the request never arrives, and the connection stays open in silence
    SWALLOW = auto()
    #: half of the request arrives, then the connection ends
    CUT = auto()
    #: the request is carried out; its reply waits until it is let go
    HOLD_REPLY = auto()
    #: the request is carried out; the connection is reset instead of its reply
    RESET_REPLY = auto()
    #: the request is carried out; its reply never comes, and the connection stays open in silence
    SWALLOW_REPLY = auto()
    #: the request is carried out; half of its reply comes, then the connection ends
    CUT_REPLY = auto()

    @property
    def to_reply(self) -> bool:
        """Whether the request itself arrives."""
        return self.name.endswith("_REPLY")


@dataclass(eq=False)
class Incident:
    """What happens to the next requests of a kind.

    :param times: to how many of them; None: to all, until :meth:`let_go`.
    """

    match: Match
    harm: Harm
    times: int | None = 1
    #: how many it has met
    count: int = 0
    #: set when the first such request has come
    met: Event = field(default_factory=Event)
    #: set when the harm is done
    done: Event = field(default_factory=Event)
    _go: Event = field(default_factory=Event)

    @property
    def over(self) -> bool:
        """Whether it meets no more requests."""
        return self._go.is_set() or (self.times is not None and self.count >= self.times)

    def meet(self) -> None:
        """A request has come that it is for."""
        self.count += 1
        self.met.set()

    def let_go(self) -> None:
        """Let what is held go on, and do nothing to later ones."""
        self._go.set()

    def hold(self) -> None:
        """Wait until it is let go."""
        self._go.wait()
