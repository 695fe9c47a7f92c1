"""What a caller gets."""

from __future__ import annotations

import json
from copy import copy
from typing import Any

from flightsvc.flight.key import FlightKey
from flightsvc.flight.serializer import Payload
from flightsvc.flight.state import End, Landed, Role


class FlightResult:
    """An answer, and how this caller came by it.

    ``value`` is decoded at its first use, from bytes that all callers share: what one caller
    does to its copy no other sees.
    """

    __slots__ = ("_payload", "_value", "fallback", "fence", "flight_id", "role")

    def __init__(
        self,
        payload: Payload,
        role: Role,
        flight_id: str,
        fence: int,
        fallback: str | None = None,
    ) -> None:
        self._payload = payload
        self.role: str = role.value
        self.flight_id = flight_id
        self.fence = fence
        #: what stands in for the call's own answer, or None
        self.fallback = fallback

    @classmethod
    def stand_in(cls, value: Any, action: str, flight_id: str, fence: int) -> FlightResult:
        """What is told in place of an answer that an earlier flight does not have.

        :param value: what JSON can hold.
        :param action: the fallback that it comes from.
        """
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return cls(Payload("json", text.encode()), Role.REPLAY, flight_id, fence, action)

    @property
    def value(self) -> Any:
        """The call's value: what JSON makes of it, or bytes."""
        try:
            return self._value
        except AttributeError:
            self._value: Any = self._payload.thaw()
            return self._value

    @property
    def json_bytes(self) -> bytes:
        """The value as JSON text in UTF-8, as it is stored: no decoding, no encoding.

        :raises TypeError: if the value is bytes.
        """
        if self._payload.kind != "json":
            raise TypeError("the value is bytes, not JSON")
        return self._payload.data

    def __repr__(self) -> str:
        return f"FlightResult({self.role}, {self.flight_id}, fence={self.fence})"


def is_replay(end: End) -> bool:
    """Whether a flight ended with the answer of an earlier one."""
    return isinstance(end, Landed) and end.role is Role.REPLAY


def result_of(key: FlightKey, end: End, first: bool) -> FlightResult:
    """A flight's end as one caller's own result or exception.

    :param first: whether this caller started the flight.
    """
    if isinstance(end, Landed):
        role = Role.FOLLOWER if end.role is Role.OWNER and not first else end.role
        return FlightResult(end.payload, role, key.flight_id, end.fence, end.fallback)
    if end.error is not None:
        raise copy(end.error)
    raise end.failure.error(key.flight_id, end.fence) from end.cause
