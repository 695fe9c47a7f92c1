"""What the state machine draws from."""

from __future__ import annotations

from hypothesis import strategies as st

from flightsvc.errors import FailureType
from flightsvc.flight.state import Failure
from tests.proof.lockstep import FLIGHTS
from tests.proof.world import DETECT, LIVE_TTL

WORKERS = 3
WORKER = st.integers(0, WORKERS - 1)
#: an index from the end of a list: 0 is the newest
PICK = st.one_of(st.just(0), st.integers(0, 5))
#: whether an owner is silent for too long before somebody asks
SILENT = st.sampled_from([False, False, True])
FLIGHT = st.integers(0, FLIGHTS - 1)
#: how a write may differ from what its owner would send
TWIST = st.sampled_from([*[""] * 12, "token", "fence up", "fence down"])
CHECKSUMS = st.sampled_from(["aaaaaaaa", "bbbbbbbb"])
FAILURES = st.builds(
    Failure,
    st.sampled_from([FailureType.PROVIDER, FailureType.TIMEOUT]),
    st.sampled_from(["BROKEN", "SLOW"]),
    st.sampled_from([True, True, False]),
    st.sampled_from([503, 504]),
    st.sampled_from([0, 0, 3_000, 25_000]),
)
WRITES = st.one_of(
    st.tuples(st.just("mark_running")),
    st.tuples(st.just("release")),
    st.tuples(st.just("abandon")),
    st.tuples(st.just("finish"), CHECKSUMS),
    st.tuples(st.just("fail"), FAILURES),
    st.tuples(st.just("append"), st.integers(-1, 1), st.integers(0, 3)),
)
MOMENTS = st.one_of(
    st.tuples(st.just("later"), st.sampled_from([0, 1, 900, 2_000, DETECT, 12_000, LIVE_TTL])),
    st.tuples(st.just("edge"), st.integers(0, 30), st.sampled_from([-1, 0, 1])),
    st.tuples(st.just("edge"), st.integers(0, 30), st.sampled_from([-1, 0, 1])),
    st.tuples(st.just("back"), st.sampled_from([1, 900, DETECT, DETECT + 2, 60_000])),
)
LOST = [f"{part}:{n}" for part in ("meta", "result", "events", "interest") for n in range(FLIGHTS)]
ASIDES = st.one_of(
    st.tuples(st.just("inspect"), FLIGHT),
    st.tuples(st.just("leave"), FLIGHT, WORKER),
    st.tuples(st.just("discard"), FLIGHT, st.booleans(), PICK, CHECKSUMS),
    st.tuples(st.just("forget"), FLIGHT),
    st.tuples(st.just("lose"), st.sampled_from([*LOST, "live", "fence"])),
    st.tuples(st.just("trim"), FLIGHT),
    st.tuples(st.just("worker_dies"), WORKER),
    st.tuples(st.just("lose_all")),
)
