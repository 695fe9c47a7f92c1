"""The proxy does what it is told, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import gevent
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from flightsvc.store.scripts import sha1, source
from tests.faults.incident import Harm
from tests.faults.proxy import Proxy
from tests.faults.resp import Frames, command, frame_end, holding, script, words
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

QUICK_S = 0.2
REQUEST = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"


@pytest.fixture(params=[True, False], ids=["tcp", "unix"])
def proxy(request: pytest.FixtureRequest, redis_server: RedisServer) -> Iterator[Proxy]:
    with Proxy(redis_server, tcp=request.param) as line:
        yield line


def connected(proxy: Proxy, timeout_s: float) -> Any:
    """A client that sends nothing twice."""
    return redis.Redis.from_url(
        proxy.url,
        socket_timeout=timeout_s,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
        driver_info=None,
    )


@pytest.fixture
def client(proxy: Proxy) -> Iterator[Any]:
    one = connected(proxy, 5)
    yield one
    one.connection_pool.disconnect()


@pytest.fixture
def hasty(proxy: Proxy) -> Iterator[Any]:
    """For what never comes."""
    one = connected(proxy, QUICK_S)
    yield one
    one.connection_pool.disconnect()


# -- frames ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "frame",
    [
        b"+OK\r\n",
        b":12\r\n",
        b"-ERR no\r\n",
        b"$-1\r\n",
        b"$0\r\n\r\n",
        b"$4\r\na\r\nb\r\n",
        b"*-1\r\n",
        b"*0\r\n",
        REQUEST,
        b"*2\r\n*1\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n",
        b"%1\r\n+a\r\n*1\r\n:1\r\n",
    ],
)
def test_frames_are_found_however_they_are_cut(frame: bytes) -> None:
    both = frame + REQUEST
    assert frame_end(both) == len(frame)
    for cut in range(1, len(both)):
        frames = Frames()
        assert [*frames.feed(both[:cut]), *frames.feed(both[cut:])] == [frame, REQUEST]


def test_requests_are_told_apart() -> None:
    assert words(REQUEST) == [b"GET", b"k"]
    assert words(b"PING\r\n") == [b"PING"]
    assert command("get")(REQUEST)
    assert not command("set")(REQUEST)
    assert holding(b"GET")(REQUEST)


def call(verb: str, text: bytes, key: bytes) -> bytes:
    return b"*4\r\n" + b"".join(
        b"$%d\r\n%b\r\n" % (len(word), word) for word in (verb.encode(), text, b"1", key)
    )


def test_a_script_is_known_by_its_hash_and_by_its_text() -> None:
    by_hash = call("EVALSHA", sha1("acquire").encode(), b"{x}:meta:1")
    whole = call("EVAL", source("acquire"), b"{x}:meta:1")
    for request in (by_hash, whole):
        assert script("acquire")(request)
        assert script("acquire", key="meta:1")(request)
        assert not script("acquire", key="meta:2")(request)
        assert not script("finish")(request)


# -- one request ----------------------------------------------------------------------------


def test_what_nobody_planned_passes(client: Any) -> None:
    client.set("t-passes", b"x" * 300_000, px=5000)
    with client.pipeline(transaction=False) as pipe:
        for _ in range(3):
            pipe.get("t-passes")
        assert pipe.execute() == [b"x" * 300_000] * 3


@pytest.mark.parametrize("harm", [Harm.RESET, Harm.SWALLOW, Harm.CUT])
def test_a_request_is_lost_on_its_way(
    proxy: Proxy, client: Any, hasty: Any, redis_server: RedisServer, harm: Harm
) -> None:
    name = f"t-{harm.name}-{proxy.url}"
    incident = proxy.plan(harm, name.encode())
    if harm is Harm.SWALLOW:
        with pytest.raises(redis.TimeoutError):
            hasty.incr(name)
    else:
        with pytest.raises(redis.ConnectionError):
            client.incr(name)
    assert incident.done.wait(5)
    assert redis_server.client().get(name) is None
    # once, and only this one
    assert client.set(name, 1, px=5000)


@pytest.mark.parametrize("harm", [Harm.RESET_REPLY, Harm.SWALLOW_REPLY, Harm.CUT_REPLY])
def test_a_reply_is_lost_on_its_way(
    proxy: Proxy, client: Any, hasty: Any, redis_server: RedisServer, harm: Harm
) -> None:
    name = f"t-{harm.name}-{proxy.url}"
    client.set(name, 1, px=5000)
    incident = proxy.plan(harm, command("incrby"))
    if harm is Harm.SWALLOW_REPLY:
        with pytest.raises(redis.TimeoutError):
            hasty.incr(name)
    else:
        with pytest.raises(redis.ConnectionError):
            client.incr(name)
    assert incident.done.wait(5)
    assert redis_server.client().get(name) == b"2"
    assert client.incr(name) == 3


@pytest.mark.parametrize("harm", [Harm.HOLD, Harm.HOLD_REPLY])
def test_a_request_or_its_reply_is_held(proxy: Proxy, client: Any, harm: Harm) -> None:
    incident = proxy.plan(harm, command("ping"))
    ping = gevent.spawn(client.ping)
    assert incident.met.wait(5)
    assert not ping.dead
    incident.let_go()
    assert ping.get(timeout=5) is True


def test_a_plan_can_be_for_some_requests_or_for_all(proxy: Proxy, client: Any) -> None:
    twice, always = (
        proxy.plan(Harm.RESET, b"t-twice", times=2),
        proxy.plan(Harm.RESET, b"t-all", times=None),
    )
    for _ in range(2):
        with pytest.raises(redis.ConnectionError):
            client.get("t-twice")
    client.get("t-twice")
    for _ in range(5):
        with pytest.raises(redis.ConnectionError):
            client.get("t-all")
    always.let_go()
    client.get("t-all")
    assert (twice.count, always.count) == (2, 5)


# -- the whole line -------------------------------------------------------------------------


def test_everything_takes_longer(proxy: Proxy, client: Any, hasty: Any) -> None:
    proxy.delay(request_s=0.05, reply_s=0.05)
    began = time.monotonic()
    client.ping()
    assert time.monotonic() - began >= 0.1
    proxy.delay(request_s=2 * QUICK_S, reply_s=QUICK_S)
    with pytest.raises(redis.TimeoutError):
        hasty.ping()
    proxy.heal()
    client.ping()


def test_what_is_sent_into_silence_arrives_when_it_ends(
    proxy: Proxy, hasty: Any, redis_server: RedisServer
) -> None:
    name = f"t-silence-{proxy.url}"
    proxy.fall_silent(replies=False)
    with pytest.raises(redis.TimeoutError):
        hasty.set(name, 1, px=5000)
    hasty.connection_pool.disconnect()
    assert redis_server.client().get(name) is None
    proxy.heal()
    # also from a client that has hung up meanwhile
    wait_until(lambda: redis_server.client().get(name) == b"1", 2)


def test_replies_alone_can_be_silent(proxy: Proxy, hasty: Any, redis_server: RedisServer) -> None:
    name = f"t-replies-{proxy.url}"
    proxy.fall_silent(requests=False)
    with pytest.raises(redis.TimeoutError):
        hasty.set(name, 1, px=5000)
    assert redis_server.client().get(name) == b"1"


def test_connections_are_reset_and_new_ones_taken(proxy: Proxy, client: Any) -> None:
    ping = proxy.plan(Harm.HOLD_REPLY, command("ping"))
    ping.met.rawlink(lambda _: proxy.reset())
    with pytest.raises(redis.ConnectionError):
        client.ping()
    ping.let_go()
    assert client.ping()
    assert proxy.links == 1


def test_a_line_that_is_cut_takes_no_connection_until_it_is_mended(
    proxy: Proxy, client: Any
) -> None:
    client.ping()
    url = proxy.url
    proxy.cut()
    for _ in range(2):
        with pytest.raises(redis.ConnectionError):
            client.ping()
    proxy.mend()
    assert proxy.url == url
    assert client.ping()


def test_without_a_server_behind_it_connections_end(own_redis: RedisServer) -> None:
    with Proxy(own_redis) as proxy:
        client = redis.Redis.from_url(proxy.url, retry=Retry(NoBackoff(), 0))
        own_redis.kill()
        with pytest.raises(redis.ConnectionError):
            client.ping()
        own_redis.start()
        assert client.ping()
        client.close()
