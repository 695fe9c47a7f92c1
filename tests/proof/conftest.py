"""Workers in this process, as in the tests of the flight."""

from tests.flight.conftest import worker

__all__ = ["worker"]
