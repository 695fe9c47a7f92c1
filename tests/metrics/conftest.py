from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.metrics.receiver import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.close()
