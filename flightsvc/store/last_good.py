"""The last good answer of a place in a session, for when no new one can be had.

It is sent in the background and may be a moment old; a worker that dies loses what it had not sent.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

from flightsvc.store import verbs
from flightsvc.store.errors import StoreError
from flightsvc.store.names import SharedNames
from flightsvc.store.nowhere import OK, Scripts
from flightsvc.store.watch import SharedWatch

#: how long an answer is kept, in ms
TTL_MS = 86_400_000
#: longest answer that is kept, in bytes of JSON
LONGEST = 64 * 1024
#: answers that wait in a worker, or that one without Redis keeps; the oldest go first
MOST = 1_000
#: answers that go out in one round trip
BATCH = 50


class Recalled(NamedTuple):
    """An answer from before.

    :param age_s: how old it is, in s.
    """

    value: Any
    age_s: float


class LastGood:
    """A duty of the watch. No method raises; only :meth:`recall` waits.

    A place is a tuple of texts: tenant, stage, session and what was asked there. Its tenant keeps
    the answers of one from the others.

    :param shares: whether there is a Redis; without, each worker keeps its own.
    """

    every_s = 0.2

    def __init__(
        self, store: Scripts, names: SharedNames, watch: SharedWatch, *, shares: bool
    ) -> None:
        self._store = store
        self._names = names
        self._watch = watch
        self._shares = shares
        self._kept: OrderedDict[str, tuple[float, bytes]] = OrderedDict()

    def remember(self, place: Sequence[str], value: object) -> None:
        """Keep an answer; the one from before is forgotten."""
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        if len(text) > LONGEST:
            return
        place_id = _id_of(place)
        self._kept.pop(place_id, None)
        self._kept[place_id] = time.monotonic(), text
        if len(self._kept) > MOST:
            self._kept.popitem(last=False)
        self._watch.start()

    def recall(self, place: Sequence[str], max_age_s: float) -> Recalled | None:
        """The last good answer, if there is one that is not too old."""
        place_id = _id_of(place)
        found = self._here(place_id) or self._there(place_id)
        return found if found is not None and found.age_s <= max_age_s else None

    def pending(self) -> bool:
        return self._shares and bool(self._kept)

    def send(self) -> None:
        batch = dict(islice(self._kept.items(), BATCH))
        keys = [self._names.answer(place_id) for place_id in batch]
        self._store.run(verbs.REMEMBER, keys, [TTL_MS, *(text for _, text in batch.values())])
        for place_id, sent in batch.items():
            if self._kept.get(place_id) is sent:  # no newer one came meanwhile
                del self._kept[place_id]
        if self._kept:
            self._watch.wake()

    def _here(self, place_id: str) -> Recalled | None:
        kept = self._kept.get(place_id)
        return kept and Recalled(json.loads(kept[1]), time.monotonic() - kept[0])

    def _there(self, place_id: str) -> Recalled | None:
        if not (self._shares and self._watch.up):
            return None
        try:
            answer = self._store.run(verbs.RECALL, [self._names.answer(place_id)], [])
        except StoreError:
            return None
        if answer[0] != OK:
            return None
        return Recalled(json.loads(answer[2]), int(answer[1]) / 1000)


def _id_of(place: Sequence[str]) -> str:
    # each length first, so that no two places run together
    whole = "".join(f"{len(part)}:{part}" for part in place)
    return sha256(whole.encode("utf-8", "replace")).hexdigest()[:32]
