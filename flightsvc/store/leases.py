"""Leases that end by themselves: who may try whether a model is back."""

from __future__ import annotations

import time
import uuid
from typing import Any

import gevent

from flightsvc.store import verbs
from flightsvc.store.errors import StoreError
from flightsvc.store.names import SharedNames
from flightsvc.store.nowhere import OK, Scripts
from flightsvc.store.watch import SharedWatch

Target = tuple[str, str]

#: how long a lease outlives its holder, in s, and the time between two renewals
LEASE_S, RENEW_S = 2.0, 0.5
#: longest wait for the end of this worker's former lease, in s
ENDING_S = 0.1


class ProbeLeases:
    """Lets one worker of many try whether a target is back.

    The lease in Redis is short and is renewed while the holder's process lives and probes; so a
    killed prober makes room within ``LEASE_S``. Without Redis every worker may try by itself.
    No method raises.

    :param watch: says whether Redis can be asked.
    """

    def __init__(self, store: Scripts, names: SharedNames, watch: SharedWatch) -> None:
        self._store = store
        self._names = names
        self._watch = watch
        self._keeping: dict[str, gevent.Greenlet[..., Any]] = {}
        self._ending: dict[Target, gevent.Greenlet[..., Any]] = {}
        self._held_until: dict[Target, float] = {}

    def take(self, target: Target, lease_s: float, /) -> str | None:
        """Ask for the lease.

        :param target: provider and model.
        :param lease_s: the longest time that the probe takes, in s.
        :returns: a token; None if another worker holds the lease.
        """
        ending = self._ending.get(target)
        if ending is not None:  # our own former lease must not refuse us
            ending.join(ENDING_S)
        token = uuid.uuid4().hex
        try:
            held_ms = self._ask(target, token)
        except StoreError:
            held_ms = 0  # without Redis there is nobody to agree with
        if held_ms:
            self._held_until[target] = time.monotonic() + held_ms / 1000
            return None
        self._held_until.pop(target, None)
        self._keeping[token] = gevent.spawn(self._keep, target, token, lease_s)
        return token

    def give_back(self, target: Target, token: str, /) -> None:
        """End a lease early, if it is still this token's; returns at once."""
        keeping = self._keeping.pop(token, None)
        if keeping is not None:
            self._ending[target] = gevent.spawn(self._end, target, token, keeping)

    def retry_after_s(self, target: Target, /) -> float:
        """After how many seconds another try may make sense; 0: nobody is known to try."""
        return max(0.0, self._held_until.get(target, 0.0) - time.monotonic())

    def close(self) -> None:
        """Renew nothing any more, and see given leases out, if Redis answers at once."""
        for greenlet in self._keeping.values():
            greenlet.kill(block=False)
        self._keeping.clear()
        gevent.joinall(list(self._ending.values()), timeout=ENDING_S)

    def _ask(self, target: Target, token: str) -> int:
        """0 if the lease is ours; else for how long it is another's, in ms."""
        if not self._watch.up:
            return 0
        answer = self._store.run(verbs.TAKE, [self._key(target)], [token, int(LEASE_S * 1000)])
        return 0 if answer[0] == OK else max(1, int(answer[1]))

    def _keep(self, target: Target, token: str, lease_s: float) -> None:
        until = time.monotonic() + lease_s
        while time.monotonic() < until:
            gevent.sleep(RENEW_S)
            try:
                self._store.run(verbs.KEEP, [self._key(target)], [token, int(LEASE_S * 1000)])
            except StoreError:
                continue  # it may be back before the lease ends

    def _end(self, target: Target, token: str, keeping: gevent.Greenlet[..., Any]) -> None:
        keeping.kill()
        try:
            if self._watch.up:
                self._store.run(verbs.GIVE_BACK, [self._key(target)], [token])
        except StoreError:
            pass  # it ends by itself
        finally:
            if self._ending.get(target) is gevent.getcurrent():
                del self._ending[target]

    def _key(self, target: Target) -> str:
        return self._names.probe("/".join(target))
