from __future__ import annotations

from collections.abc import Iterator

import pytest

from dashboards.chain import Chain
from dashboards.programs import Programs, install, missing


@pytest.fixture(scope="session")
def programs() -> Programs:
    """StatsD, carbon and graphite-web, installed into this checkout if they are not yet."""
    if lacking := missing():
        pytest.skip(f"wants Debian's {', '.join(lacking)}: apt-get install {' '.join(lacking)}")
    return install()


@pytest.fixture(scope="module")
def chain(programs: Programs) -> Iterator[Chain]:
    """A chain of its own for a file's tests.

    carbon keeps one value a second. StatsD flushes every other second, so that a flush that comes
    late does not overwrite the one before it.
    """
    with Chain(programs, flush_ms=2_000) as one:
        yield one
