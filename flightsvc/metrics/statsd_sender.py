"""The way to the StatsD server: its address, looked up in the background, and the datagrams.

The ``statsd`` client looks its host up in its constructor, which blocks and raises. So it is
made in a greenlet of its own, again and again until it works; until then there is no client and
nobody waits. It is made anew once a minute, so that a server that moved is found.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import gevent
from gevent.event import Event
from statsd import StatsClient
from statsd.client.udp import Pipeline

from flightsvc.metrics.series import Counter, Series, Timer

#: largest datagram, in bytes; fits every path's MTU
DATAGRAM_BYTES = 512
#: lines after which other greenlets get their turn
LINES_AT_ONCE = 200
#: first and longest wait before a failed look-up is repeated, in s
RETRY_S = (1.0, 30.0)
#: age at which an address is looked up again, in s
ADDRESS_S = 60.0

log = logging.getLogger("flightsvc.metrics")


class _Pipeline(Pipeline):  # type: ignore[misc]  # statsd has no types
    """The library's pipeline; a rate below 1 is sent as it is.

    The library itself draws a sample by the rate and drops the rest; our sample is drawn already.
    """

    def _prepare(self, stat: str, value: str, rate: float) -> str:
        # plain digits: StatsD servers do not read 1e-05
        suffix = "" if rate >= 1 else "|@" + f"{rate:.12f}".rstrip("0")
        line: str = super()._prepare(stat, value + suffix, 1)
        return line


class StatsdSender:
    """Sends series to one StatsD server; does nothing while its address is unknown.

    :param host: name or address; a name may be unknown, or its look-up may hang.
    :param port: UDP port.
    :param prefix: first part of every name, clean.
    :param worker: last part of every gauge's name, clean; empty for none.
    """

    def __init__(self, host: str, port: int, *, prefix: str, worker: str) -> None:
        self._host = host
        self._port = port
        self._prefix = prefix
        self._suffix = f".{worker}" if worker else ""
        self._client: StatsClient | None = None
        self._ready = Event()
        self._lookup = gevent.spawn(self._keep_address)

    def wait_ready(self, timeout_s: float) -> bool:
        """Wait until the address is known; False if it is not after ``timeout_s`` seconds."""
        return bool(self._ready.wait(timeout_s))

    def send(self, series: Iterable[Series]) -> None:
        """Send what is new in each series; without an address everything stays where it is."""
        client = self._client
        if client is None:
            return
        pipe = _Pipeline(client)
        lines = 0
        for one in series:
            lines += self._add(pipe, one)
            if lines >= LINES_AT_ONCE:
                pipe.send()
                lines = 0
                gevent.sleep(0)
        pipe.send()

    def close(self) -> None:
        """Stop looking the address up and close the socket."""
        self._lookup.kill(block=False)
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _add(self, pipe: _Pipeline, series: Series) -> int:
        if isinstance(series, Counter):
            new = series.take()
            if new:
                pipe.incr(series.name, new)
            return int(new != 0)
        if isinstance(series, Timer):
            samples, rate = series.take()
            for seconds in samples:
                pipe.timing(series.name, seconds * 1000, rate)
            return len(samples)
        value = series.value()
        if value is not None:
            pipe.gauge(series.name + self._suffix, value)
        return int(value is not None)

    def _keep_address(self) -> None:
        wait_s, told = RETRY_S[0], False
        while True:
            try:
                fresh = self._connect()
            except (OSError, ValueError) as error:  # ValueError: not a host name at all
                if not told:
                    log.warning("StatsD host %r not found, will look again: %s", self._host, error)
                told = True
                gevent.sleep(wait_s)
                wait_s = min(wait_s * 2, RETRY_S[1])
                continue
            old, self._client = self._client, fresh
            if old is not None:
                old.close()
            self._ready.set()
            wait_s, told = RETRY_S[0], False
            gevent.sleep(ADDRESS_S)

    def _connect(self) -> StatsClient:
        """A client for IPv4 where the host has it, for IPv6 otherwise."""
        families = (True,) if ":" in self._host else (False, True)
        for ipv6 in families:
            try:
                return StatsClient(
                    self._host, self._port, self._prefix, maxudpsize=DATAGRAM_BYTES, ipv6=ipv6
                )
            except OSError:
                if ipv6:
                    raise
        raise AssertionError("the last family either returns or raises")
