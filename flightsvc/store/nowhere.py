"""What the small shared things ask of Redis, and what stands there where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

from flightsvc.store.errors import StoreError
from flightsvc.store.scripts import Verb

#: what every answer of a script begins with that did as it was asked
OK = b"OK"


class Scripts(Protocol):
    """Runs scripts; :class:`~flightsvc.store.base.Store` does."""

    def run(self, verb: Verb, keys: Sequence[str], args: Sequence[str | bytes | int]) -> Any:
        """Run a script.

        :raises StoreError: it was refused, or its reply did not come.
        """


class Nowhere:
    """The Redis of mode ``local``: nothing is shared."""

    def run(
        self, _verb: Verb, _keys: Sequence[str], _args: Sequence[str | bytes | int]
    ) -> NoReturn:
        """:raises StoreError: always."""
        raise StoreError("down", "the mode is local: workers share nothing")
