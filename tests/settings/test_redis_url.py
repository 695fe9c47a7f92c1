"""``redis_url``: every form, and what is told of one that cannot work."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from flightsvc.errors import SettingsError
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings, load_settings
from flightsvc.settings.redis_url import EXAMPLES, SCHEMES, RedisUrl, parse_redis_url
from flightsvc.store import open_store

SECRET = "s3cr3t"

#: a URL, and what the message must name
REFUSED = {
    "localhost:6379": "redis://",
    "http://h": "redis+cluster://",
    "REDIS://h": "redis://",
    "redis+sentinels://h/s": "redis+sentinel://",
    f"redis://:{SECRET}@h:port": "port",
    f"redis://:{SECRET}@h:66666": "port",
    f"redis://:{SECRET}@h:0": "port",
    f"redis://:{SECRET}@h:": "port",
    f"redis://:{SECRET}@[::1": "host",
    f"redis://:{SECRET}@::1": "no host",
    f"redis://:{SECRET}@h h": "host",
    "redis://": "no host",
    f"redis://:{SECRET}@:6379": "no host",
    f"redis://:{SECRET}@h1,h2": "redis+cluster://",
    "unix://": "no socket",
    "unix:///": "no socket",
    f"redis://:{SECRET}@h/name": "number",
    f"redis://:{SECRET}@h/0/1": "number",
    "unix:///tmp/a.sock?db=x": "number",
    f"redis://:{SECRET}@h?decode_responses=true": "decode_responses",
    "redis://h?decode_responses=false": "decode_responses",
    "redis://h?decode_responses=": "decode_responses",
    "redis://h?DB=1": "'DB'",
    "redis://h?decode%5Fresponses=1": "decode_responses",
    "redis://h?db=1&encoding=utf-16": "encoding",
    "redis://h?socket_timeout=60": "redis_timeout_ms",
    "redis://h?max_connections=1": "redis_connections",
    "redis://h?nonsense=1": "nonsense",
    "redis://h?client_name=": "without a value",
    f"redis://:x?{SECRET}@h": "%3F",
    f"redis://:x#{SECRET}@h": "%23",
    "redis://h?ssl_ca_certs=/ca.pem": "not TLS",
    "unix:///tmp/a.sock?ssl_ca_certs=/ca.pem": "not TLS",
    "rediss://h?ssl_context=1": "ssl_context",
    "rediss://h?ssl_cert_reqs=maybe": "required, optional, none",
    "rediss://h?ssl_check_hostname=no": "true, false",
    f"redis+sentinel://:{SECRET}@h": "service",
    f"redis+sentinel://:{SECRET}@h/": "service",
    "redis+sentinel://h/a b": "service",
    "redis+sentinel://h/service/db": "number",
    "redis+sentinel://h/service?db=1": "'db'",
    "redis+sentinel:///service": "no host",
    "redis+sentinel://h1,/service": "no host",
    "redis+sentinel://h1, h2/service": "host",
    "redis+sentinel://h/service?ssl_ca_certs=/ca.pem": "not TLS",
    "redis://h?sentinel_password=x": "sentinel_password",
    f"redis+cluster://:{SECRET}@": "no host",
    f"redis+cluster://:{SECRET}@h/0": "only one",
    "redis+cluster://h?db=0": "'db'",
    "redis+cluster://h1:6379,h2:port": "port",
    "redis+cluster://h?sentinel_username=x": "sentinel_username",
    f"redis+cluster://h?decode_responses=true&password={SECRET}": "decode_responses",
}

USER: dict[str, Any] = {"username": "us/er", "password": "p:a@ss"}
OF_SENTINELS = "sentinel_username=u&sentinel_password=w"
TAKEN = {
    "redis://localhost": RedisUrl("single", False, (("localhost", 6379),)),
    "redis://us%2Fer:p%3Aa%40ss@h:6380/3": RedisUrl("single", False, (("h", 6380),), db=3, **USER),
    "redis://h/?client_name=flights": RedisUrl(
        "single", False, (("h", 6379),), options={"client_name": "flights"}
    ),
    "redis://h?username=us/er&password=p:a@ss&db=2": RedisUrl(
        "single", False, (("h", 6379),), db=2, **USER
    ),
    "rediss://:p@[::1]:6379?ssl_cert_reqs=none&db=0": RedisUrl(
        "single", True, (("::1", 6379),), password="p", options={"ssl_cert_reqs": "none"}
    ),
    "unix:///run/redis.sock": RedisUrl("unix", False, path="/run/redis.sock"),
    "unix://user:p@/run/a%20b?db=2": RedisUrl(
        "unix", False, path="/run/a b", username="user", password="p", db=2
    ),
    "redis+sentinel://s1,s2:1,[::1]:2/main.1": RedisUrl(
        "sentinel", False, (("s1", 26379), ("s2", 1), ("::1", 2)), service="main.1"
    ),
    f"rediss+sentinel://us%2Fer:p%3Aa%40ss@s/main/5?{OF_SENTINELS}": RedisUrl(
        "sentinel",
        True,
        (("s", 26379),),
        service="main",
        db=5,
        options={"sentinel_username": "u", "sentinel_password": "w"},
        **USER,
    ),
    "redis+cluster://c1,c2:7000,c1": RedisUrl("cluster", False, (("c1", 6379), ("c2", 7000))),
    "rediss+cluster://:p@c1/?ssl_ca_certs=/ca.pem": RedisUrl(
        "cluster", True, (("c1", 6379),), password="p", options={"ssl_ca_certs": "/ca.pem"}
    ),
}


@pytest.mark.parametrize(("url", "named"), REFUSED.items())
def test_h19_a_redis_url_that_cannot_work_is_refused(url: str, named: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.checked(redis_url=url)
    with pytest.raises(ValidationError) as raw:
        Settings(redis_url=url)
    assert str(refused.value).startswith("redis_url ")
    assert named in str(refused.value)
    for text in (str(refused.value), repr(refused.value), str(raw.value), repr(raw.value)):
        assert SECRET not in text


@pytest.mark.parametrize(("url", "read"), TAKEN.items())
def test_a_redis_url_that_works_is_read(url: str, read: RedisUrl) -> None:
    assert Settings(redis_url=url).redis_url == url
    assert parse_redis_url(url) == read
    assert "p:a@ss" not in repr(parse_redis_url(url))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_examples_of_the_messages_are_right(scheme: str) -> None:
    kind, tls = SCHEMES[scheme]
    read = parse_redis_url(f"{scheme}://{EXAMPLES[kind]}")
    assert (read.kind, read.tls) == (kind, tls)


def test_the_message_names_the_variable() -> None:
    with pytest.raises(SettingsError, match=r"FLIGHTSVC_REDIS_URL names no service: write redis\+"):
        load_settings({"FLIGHTSVC_REDIS_URL": "redis+sentinel://h"})


@pytest.mark.parametrize("url", TAKEN)
def test_nothing_is_connected_before_it_is_used(url: str) -> None:
    store = open_store(Settings(redis_url=url.replace("/ca.pem", __file__)), Metrics.off())
    store.close()


@pytest.mark.parametrize("option", ["ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile"])
def test_a_certificate_that_is_not_there_stops_the_start(option: str) -> None:
    settings = Settings(redis_url=f"rediss://:{SECRET}@h?{option}=/not/there")
    with pytest.raises(SettingsError, match=f"FLIGHTSVC_REDIS_URL has {option}=/not/there") as told:
        open_store(settings, Metrics.off())
    assert SECRET not in str(told.value)
