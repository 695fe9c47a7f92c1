"""The master dies or freezes in the middle of a text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flightsvc.store import Names
from tests.flight.conftest import Worker
from tests.flight.streaming import KEY, Talker, followed, listen, text
from tests.topology.conftest import Servers, servers_of
from tests.topology.test_failover import ENDS, STEADY


@pytest.fixture(params=["sentinel", "cluster"])
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    """Servers of each kind."""
    with servers_of(request.param, "debian") as servers:
        yield servers


@pytest.mark.parametrize("end", ENDS)
def test_a_text_outlives_its_master(
    worker: Worker, servers: Servers, namespace: str, end: str
) -> None:
    # given listeners at the owner and in two other workers, who have heard a part
    name = Names(namespace, 16).flight(KEY.flight_id)["meta"]
    one, two, three = (worker(servers.url, **STEADY) for _ in range(3))
    talker = Talker(text(40), held=True)
    listeners = listen(one, talker, 2)
    assert talker.began.wait(5)
    for flights in (two, three):
        listeners += listen(flights, talker, 2)
        followed(flights)
    talker.let_go(5)
    for listener in listeners:
        listener.heard(5)

    # when the master ends while the text goes on, and a replica takes its place
    master = servers.master_of(name)
    ENDS[end](master)
    talker.let_go(10)
    # then the owner's own listeners notice nothing
    for listener in listeners[:2]:
        listener.heard(15, 1)
    servers.await_new_master(master, name)
    if end == "frozen":
        master.thaw()
    talker.let_go()

    # and everybody ends with the whole text of a call: that one, or one more
    for listener in listeners:
        assert listener.result(15).value == {"chunks": 40}
        assert listener.chunks in (text(40), [])
    assert talker.calls <= 2
