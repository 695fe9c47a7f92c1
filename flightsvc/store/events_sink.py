"""State changes that failures ask for, as entries of one Redis Stream.

Other services read it (``XREADGROUP``): each entry has ``kind`` and ``event``, the whole change as
JSON (see ``checklist/events.py``), with an ``id`` of its own and ``at_ms``, when it was asked for
by the worker's clock. An entry can come twice, if Redis's reply was lost: the id is the same then.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, ClassVar, Protocol

from flightsvc.metrics import SHARED_DROPPED, SHARED_EVENTS, Metrics
from flightsvc.store import verbs
from flightsvc.store.errors import StoreError
from flightsvc.store.names import SharedNames
from flightsvc.store.nowhere import Scripts
from flightsvc.store.watch import SharedWatch

log = logging.getLogger(__name__)

#: about so many entries stay in the stream, for so long after the last, in ms
MOST_ENTRIES, TTL_MS = 10_000, 7 * 86_400_000
#: events that wait in a worker; more are dropped
MOST_WAITING = 1_000
#: events that go out in one round trip
BATCH = 100


class StateEvent(Protocol):
    """A dataclass of JSON values."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def to_fields(self) -> Mapping[str, str]:
        """As flat text; ``kind`` is among it."""


#: what this service itself does about an event, before it goes out
Handler = Callable[[Any], None]


@dataclasses.dataclass(slots=True)
class _Waiting:
    kind: str
    text: str
    event: StateEvent
    is_handled: bool = False


class StateEvents:
    """The stream's writer. A duty of the watch; :meth:`emit` neither waits nor raises.

    :param shares: whether there is a stream at all; without, every event is dropped.
    :param handlers: by kind of event, called in the watch's greenlet; what they raise is logged,
        but for a :class:`StoreError`: then event and handler come again.
    """

    every_s = 0.0

    def __init__(
        self,
        store: Scripts,
        names: SharedNames,
        watch: SharedWatch,
        metrics: Metrics,
        *,
        shares: bool = True,
        handlers: Mapping[str, Handler] | None = None,
    ) -> None:
        self._store = store
        self._names = names
        self._watch = watch
        self._metrics = metrics
        self._shares = shares
        self._handlers = dict(handlers or {})
        self._waiting: deque[_Waiting] = deque()

    def emit(self, event: StateEvent, /) -> None:
        """Let an event go out.

        If too many wait already, or there is no stream, it is dropped and counted.
        """
        if not self._shares or len(self._waiting) >= MOST_WAITING:
            self._metrics.count(SHARED_DROPPED, kind="events")
            return
        try:
            kind = event.to_fields()["kind"]
            waiting = _Waiting(kind, _json(kind, event), event)
        except (TypeError, ValueError, KeyError):
            log.exception("a state event cannot be written as JSON")
            self._metrics.count(SHARED_DROPPED, kind="events")
            return
        self._waiting.append(waiting)
        self._watch.wake()

    def pending(self) -> bool:
        return bool(self._waiting)

    def send(self) -> None:
        batch = list(islice(self._waiting, BATCH))
        for each in batch:
            self._handle(each)
        args: list[str | int] = [TTL_MS, MOST_ENTRIES]
        for each in batch:
            args += [each.kind, each.text]
        self._store.run(verbs.EMIT, [self._names.events], args)
        for each in batch:
            self._waiting.popleft()
            self._metrics.count(SHARED_EVENTS, kind=each.kind)
        if self._waiting:
            self._watch.wake()

    def _handle(self, waiting: _Waiting) -> None:
        handler = self._handlers.get(waiting.kind)
        if handler is None or waiting.is_handled:
            return
        try:
            handler(waiting.event)
        except StoreError:
            raise
        except Exception:
            log.exception("what %s asks for was not done here", waiting.kind)
        waiting.is_handled = True


def _json(kind: str, event: StateEvent) -> str:
    own = {"id": uuid.uuid4().hex, "kind": kind, "at_ms": int(time.time() * 1000)}
    return json.dumps(own | dataclasses.asdict(event), ensure_ascii=False)
