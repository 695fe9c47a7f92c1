"""The rights that ``docs/redis.md`` names are enough, and none of them is too much."""

from __future__ import annotations

import re
from pathlib import Path

import gevent

from flightsvc.errors import CallFailed, Overloaded
from flightsvc.flight import FlightContext, FlightKey, verbs
from flightsvc.store import scripts
from flightsvc.store import verbs as shared_verbs
from tests.flight.conftest import Worker
from tests.flight.flying import Caller, Model, ask, await_following, count, values
from tests.support.redis_node import RedisNode
from tests.support.redis_sentinel import RedisSentinels
from tests.topology.conftest import Servers

DOCS = (Path(__file__).parents[2] / "docs" / "redis.md").read_text(encoding="utf-8")
#: each line of the docs that makes a user
LINES = re.findall(r"^ACL SETUSER (\S+) (.*)$", DOCS, re.MULTILINE)
NAMESPACE = "shop"
STEADY = {
    "heartbeat_ms": 100,
    "redis_timeout_ms": 1_000,
    "takeover_detect_ms": 6_000,
    "namespace": NAMESPACE,
}
#: what the store itself sends, and for which kind of URL alone
STORE = {"evalsha", "eval", "xread", "xinfo|stream", "info"}
ONLY = {"select": "a database", "client|setname": "a name", "cluster|slots": "a cluster"}
ONLY |= {"asking": "a cluster"}


def rights(user: str) -> list[str]:
    """What the docs grant a user."""
    (words,) = (words for name, words in LINES if name == user)
    return str(words).split()


def test_the_rights_are_those_that_scripts_and_store_use() -> None:
    used = set(STORE)
    for verb in (*verbs.ALL, *shared_verbs.ALL):
        text = scripts.source(verb.name).decode()
        calls = re.findall(r"redis\.p?call\('(\w+)'(?:, '(STREAM)')?", text)
        used |= {"|".join(part for part in call if part).lower() for call in calls}
    granted = {word[1:] for word in rights("flightsvc") if word.startswith("+")}
    assert granted == used | ONLY.keys()


def do_everything(worker: Worker, url: str) -> None:
    """Every script, every path of a flight."""
    one, two = (worker(url, **STEADY) for _ in range(2))
    key, model = FlightKey("scoring", "a"), Model(held=True)
    callers = ask(one, key, model)
    assert model.began.wait(5)
    callers += ask(two, key, model)
    await_following(two)
    gevent.sleep(0.6)  # heartbeats, a look
    model.let_go()
    assert values(callers) == [{"call": 1}]
    assert worker(url, **STEADY).run(key, Model()).role == "replay"
    assert isinstance(Caller(one, key, Model(error=ValueError()), replay=False).error(), CallFailed)

    def full(ctx: FlightContext) -> None:
        raise Overloaded()

    assert isinstance(Caller(one, FlightKey("scoring", "b"), full, queued=True).error(), Overloaded)

    def heavy(ctx: FlightContext) -> str:
        with one.locks.hold("session", ctx, wait_s=1) as hold:
            gevent.sleep(0.3)
            return "lost" if hold.lost else "held"

    assert one.run(FlightKey("scoring", "c"), heavy).value == "held"
    assert one.inspect(key.flight_id) is not None
    assert one.live().whole
    assert (one.coordination, two.coordination) == ("ok", "ok")
    for flights in (one, two):
        assert count(flights, "redis.errors.denied") == count(flights, "redis.errors.other") == 0


def denials(node: RedisNode) -> list[dict[str, str]]:
    """What a server refused for want of a right."""
    found: list[dict[str, str]] = node.client().acl_log()
    return found


def test_a_user_with_these_rights_alone_can_do_everything(
    own_servers: Servers, worker: Worker
) -> None:
    for server in own_servers.servers:
        server.client().execute_command("ACL", "SETUSER", "flightsvc", *rights("flightsvc"))
    url = own_servers.url.replace("://", "://flightsvc:password@")
    if isinstance(own_servers, RedisSentinels):
        for sentinel in own_servers.sentinels:
            sentinel.client().execute_command("ACL", "SETUSER", "looker", *rights("looker"))
        url += "/1?sentinel_username=looker&sentinel_password=password&client_name=x"
    else:
        url += "?client_name=x"
    do_everything(worker, url)
    for node in own_servers.nodes:
        assert denials(node) == []


def test_a_user_with_these_rights_reaches_no_other_name(
    own_servers: Servers, worker: Worker
) -> None:
    for server in own_servers.servers:
        server.client().execute_command("ACL", "SETUSER", "flightsvc", *rights("flightsvc"))
    url = own_servers.url.replace("://", "://flightsvc:password@")
    other = worker(url, namespace="shop2")
    assert other.run(FlightKey("scoring", "a"), Model()).role == "local"
    assert other.coordination == "degraded"
    assert any(denials(node) for node in own_servers.nodes)
