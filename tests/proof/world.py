"""What Redis holds of a few flights, as plain Python. Time is a number that the test sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

DETECT = 5_000
#: budget of the stage and takeover detection, in ms
DEADLINE = 20_000
LIVE_TTL = 30_000
RESULT_TTL = 40_000
FAILURE_TTL = 20_000
EVENTS_TTL = 30_000


@dataclass(eq=False)
class Event:
    """An entry of a stream; its id is learned from the server."""

    fields: dict[str, str]
    id: str = ""


@dataclass(eq=False)
class Stream:
    """A stream, and the last entry that it ever had."""

    last: Event
    events: list[Event]


@dataclass
class Error:
    """How a flight failed."""

    error_type: str
    code: str
    retryable: bool
    status: int
    not_before: int


@dataclass
class Meta:
    """A flight's state. Times are in ms."""

    state: str
    fence: int
    owner: str
    worker: str
    digest: str
    ownerships: int
    silent: int
    action: str
    created: int
    heartbeat: int
    deadline: int
    events_from: Event
    seq: int = 0
    result_fence: int = 0
    checksum: str = ""
    error: Error | None = None

    @property
    def flying(self) -> bool:
        return self.state in ("PENDING", "RUNNING")


@dataclass
class Flight:
    """All keys of one flight; what is None or empty is not there."""

    name: str
    meta: Meta | None = None
    result: bytes | None = None
    events: Stream | None = None
    interest: dict[str, int] = field(default_factory=dict)


class World:
    """Everything under one namespace with one shard."""

    def __init__(self, us: int, flights: int) -> None:
        self.us = us
        self.flights = [Flight(str(n)) for n in range(flights)]
        self.live: dict[str, int] = {}
        self.fence = 0
        #: when keys expire, in ms
        self.expires: dict[str, int] = {}
        #: TTLs that were set since this was last cleared, in ms
        self.touched: dict[str, int] = {}

    @property
    def ms(self) -> int:
        return self.us // 1000

    def present(self) -> Iterator[str]:
        """The names of all keys that are there."""
        for flight in self.flights:
            for part in ("meta", "result", "events", "interest"):
                if getattr(flight, part):
                    yield f"{part}:{flight.name}"
        if self.live:
            yield "live"
        if self.fence:
            yield "fence"

    def drop(self, key: str) -> None:
        """A key is deleted, or expires."""
        part, _, name = key.partition(":")
        self.expires.pop(key, None)
        if part == "live":
            self.live = {}
        elif part == "fence":
            self.fence = 0
        else:
            setattr(self.flights[int(name)], part, {} if part == "interest" else None)

    def overdue(self, us: int) -> list[str]:
        """The keys that have expired by a time, in microseconds."""
        return [key for key, at in self.expires.items() if at <= us // 1000]

    def edges(self) -> set[int]:
        """The moments at which something changes by itself, in ms."""
        edges = set(self.expires.values())
        edges |= {at + LIVE_TTL for at in self.live.values()}
        for flight in self.flights:
            edges |= set(flight.interest.values())
            if flight.meta is not None:
                edges |= {flight.meta.heartbeat + DETECT, flight.meta.deadline}
                edges |= {flight.meta.error.not_before} if flight.meta.error else set()
        return edges

    def state_of(self, flight: int) -> tuple[str | None, int]:
        """State and fence of a flight."""
        meta = self.flights[flight].meta
        return (meta.state, meta.fence) if meta else (None, 0)

    def core_of(self, number: int) -> Any:
        """What a repeated write must leave alone: all but the heartbeat and leases."""
        flight = self.flights[number]
        meta = flight.meta and replace(flight.meta, heartbeat=0)
        return meta, flight.result, flight.events and list(flight.events.events)

    # -- changes -----------------------------------------------------------------------------

    def announce(self, flight: Flight, fence: int) -> Event:
        return self.say(flight, LIVE_TTL, kind="owned", fence=fence)

    def say(self, flight: Flight, ttl: int | None, **fields: object) -> Event:
        event = Event({name: str(value) for name, value in fields.items()})
        if flight.events is None:
            flight.events = Stream(event, [])
        flight.events.events.append(event)
        flight.events.last = event
        if ttl is not None:
            self.expire(f"events:{flight.name}", ttl)
        return event

    def forget_followers(self, flight: Flight) -> None:
        self.drop(f"interest:{flight.name}")

    def lands(self, flight: Flight) -> None:
        self.live.pop(flight.name, None)
        if not self.live:
            self.expires.pop("live", None)

    def expire(self, key: str, ttl: int) -> None:
        """Set a key's TTL, in ms."""
        self.expires[key] = self.ms + ttl
        self.touched[key] = ttl


def told_failure(meta: Meta, wait: int) -> dict[str, object]:
    error = meta.error
    assert error is not None
    return {
        "kind": "failed",
        "fence": meta.fence,
        "error_type": error.error_type,
        "code": error.code,
        "retryable": int(error.retryable),
        "status": error.status,
        "wait_ms": wait,
    }


def place(text: str) -> tuple[int, int]:
    ms, _, number = text.partition("-")
    return int(ms), int(number)
