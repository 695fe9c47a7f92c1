"""The client library sends nothing twice, whatever happens to the reply."""

from __future__ import annotations

from collections.abc import Callable

import gevent
import pytest

from flightsvc.store import Store
from tests.processes import wait_until
from tests.topology.asking import Asker, calls
from tests.topology.conftest import Servers

EVALS = ("evalsha", "eval")


@pytest.mark.parametrize("how", ["time-out", "broken connection"])
def test_a_command_without_a_reply_is_sent_once(
    own_servers: Servers, store: Callable[..., Store], how: str
) -> None:
    # given a server that froze before it read a command
    own_servers.set_failover(False)
    timeout_ms = 300 if how == "time-out" else 5_000
    asker = Asker(store(own_servers.url, redis_timeout_ms=timeout_ms))
    asker.ask()
    master = own_servers.master_of(asker.name())
    before = sum(calls(master, command) for command in EVALS)
    master.freeze()
    asking = gevent.spawn(asker.kind)
    gevent.sleep(0.1)
    if how == "broken connection":
        asker.store.close()
    assert asking.get() == ("timeout" if how == "time-out" else "connection")

    # when it goes on
    master.thaw()

    # then it gets the command once, and no other after it
    wait_until(lambda: sum(calls(master, command) for command in EVALS) == before + 1)
    gevent.sleep(0.5)
    assert sum(calls(master, command) for command in EVALS) == before + 1


def test_a_blocking_read_without_a_reply_is_sent_once(
    own_servers: Servers, store: Callable[..., Store]
) -> None:
    own_servers.set_failover(False)
    asker = Asker(store(own_servers.url))
    asker.ask()
    master = own_servers.master_of(asker.name())
    master.freeze()
    reading = gevent.spawn(asker.store.read, {asker.name(): "0-0"})
    reading.join(5)
    assert reading.dead
    assert reading.exception is not None
    master.thaw()
    wait_until(lambda: calls(master, "xread") == 1)
    gevent.sleep(0.5)
    assert calls(master, "xread") == 1
