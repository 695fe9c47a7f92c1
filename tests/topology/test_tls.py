"""``rediss://``, users and passwords: against servers that speak nothing but TLS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flightsvc.flight import FlightKey
from flightsvc.store import Store
from tests.flight.conftest import Worker
from tests.flight.flying import Caller, Model, await_following, values
from tests.support import topology
from tests.support.certificates import Certificates
from tests.support.redis_cluster import RedisClusterServers
from tests.support.redis_node import RedisNode
from tests.support.redis_sentinel import RedisSentinels
from tests.topology.asking import Asker
from tests.topology.conftest import Servers

KEY = FlightKey("scoring", "s1", "an answer")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Of an authority that the servers do not know."""
    return Certificates(tmp_path_factory.mktemp("others"))


@pytest.fixture(scope="module")
def server(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisNode]:
    """A server with users, that asks for a certificate."""
    config = {
        **certificates.config("server"),
        "tls-auth-clients": "yes",
        "user": "app on >p/w:@ ~* +@all",
        "requirepass": "default/s",
    }
    folder = tmp_path_factory.mktemp("tls") / "server"
    certificate, key = certificates.sign("tester", "DNS:tester")
    tls = {
        "ssl_ca_certs": str(certificates.authority),
        "ssl_certfile": str(certificate),
        "ssl_keyfile": str(key),
        "password": "default/s",
    }
    node = RedisNode(topology.debian_redis(), folder, config, tls=tls)
    try:
        node.start()
        node.await_answer()
        yield node
    finally:
        node.kill()


def options(own: Certificates, believed: Certificates) -> str:
    """The options of a URL: the certificate of one authority, and belief in another's."""
    certificate, key = own.sign("worker", "DNS:worker")
    files = {
        "ssl_ca_certs": believed.authority,
        "ssl_certfile": certificate,
        "ssl_keyfile": key,
    }
    return "?" + "&".join(f"{name}={path}" for name, path in files.items())


@pytest.mark.parametrize(
    ("user", "kind"),
    [
        ("app:p%2Fw%3A%40", "ok"),
        (":default%2Fs", "ok"),
        ("app:wrong", "denied"),
        (":wrong", "denied"),
    ],
)
def test_a_user_is_known_by_the_url(
    server: RedisNode, certificates: Certificates, store: Callable[..., Store], user: str, kind: str
) -> None:
    url = f"rediss://{user}@{server.address}{options(certificates, certificates)}"
    assert Asker(store(url)).kind() == kind


def test_flights_fly_over_tls(
    server: RedisNode, certificates: Certificates, worker: Worker
) -> None:
    url = f"rediss://app:p%2Fw%3A%40@{server.address}/5{options(certificates, certificates)}"
    one, two = worker(url), worker(url)
    model = Model(held=True)
    callers = [Caller(one, KEY, model)]
    assert model.began.wait(5)
    callers.append(Caller(two, KEY, model))
    await_following(two)
    model.let_go()
    assert values(callers) == [{"call": 1}]
    assert (one.coordination, two.coordination) == ("ok", "ok")


def test_a_server_whose_certificate_is_not_believed_is_not_used(
    server: RedisNode, certificates: Certificates, others: Certificates, worker: Worker
) -> None:
    login = f"rediss://app:p%2Fw%3A%40@{server.address}"
    one = worker(login + options(certificates, others))
    assert one.run(KEY, Model()).role == "local"
    assert one.coordination == "degraded"


def test_a_worker_whose_certificate_is_not_believed_is_refused(
    server: RedisNode, certificates: Certificates, others: Certificates, store: Callable[..., Store]
) -> None:
    login = f"rediss://app:p%2Fw%3A%40@{server.address}"
    assert Asker(store(login + options(others, certificates))).kind() == "connection"


def test_the_host_must_be_the_certificates(
    certificates: Certificates, store: Callable[..., Store], tmp_path: Path
) -> None:
    tls = {"ssl_cert_reqs": "none"}
    config = certificates.config("elsewhere", "DNS:redis.example")
    node = RedisNode(topology.debian_redis(), tmp_path / "node", config, tls=tls)
    try:
        node.start()
        node.await_answer()
        url = f"rediss://{node.address}?ssl_ca_certs={certificates.authority}"
        assert Asker(store(url)).kind() == "connection"
        assert Asker(store(f"{url}&ssl_check_hostname=false")).kind() == "ok"
        assert Asker(store(f"rediss://{node.address}?ssl_cert_reqs=none")).kind() == "ok"
        assert Asker(store(f"redis://{node.address}")).kind() in ("connection", "timeout")
    finally:
        node.kill()


@pytest.fixture(params=[topology.SENTINEL, topology.CLUSTER])
def tls_servers(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Servers]:
    tls = {"ssl_ca_certs": str(certificates.authority)}
    config, program = certificates.config("node"), topology.debian_redis()
    servers: Servers
    if request.param == topology.SENTINEL:
        servers = RedisSentinels(program, config=config, tls=tls)
    else:
        servers = RedisClusterServers(program, config=config, tls=tls)
    with servers:
        yield servers


def test_sentinels_and_clusters_speak_tls_too(
    tls_servers: Servers, certificates: Certificates, worker: Worker
) -> None:
    url = f"{tls_servers.url}?ssl_ca_certs={certificates.authority}"
    one, two = worker(url, redis_timeout_ms=1_000), worker(url, redis_timeout_ms=1_000)
    for number in range(20):
        key = FlightKey("scoring", number)
        assert one.run(key, Model()).role == "owner"
        assert two.run(key, Model()).role == "replay"
    assert (one.coordination, two.coordination) == ("ok", "ok")
