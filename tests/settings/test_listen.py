from __future__ import annotations

import pytest

from flightsvc.settings import Settings
from flightsvc.settings.listen import ListenAddress, parse_listen


@pytest.mark.parametrize(
    ("text", "address", "is_local"),
    [
        ("127.0.0.1:8000", ListenAddress("127.0.0.1", 8000), True),
        ("127.9.9.9:1", ListenAddress("127.9.9.9", 1), True),
        ("localhost:8000", ListenAddress("localhost", 8000), True),
        ("LocalHost:8000", ListenAddress("LocalHost", 8000), True),
        ("[::1]:8000", ListenAddress("::1", 8000), True),
        ("[::ffff:127.0.0.1]:8000", ListenAddress("::ffff:127.0.0.1", 8000), True),
        ("unix:/run/f.sock", ListenAddress(path="/run/f.sock"), True),
        ("unix:///run/f.sock", ListenAddress(path="/run/f.sock"), True),
        ("unix:f.sock", ListenAddress(path="f.sock"), True),
        ("127.0.0.1:0", ListenAddress("127.0.0.1", 0), True),
        ("0.0.0.0:80", ListenAddress("0.0.0.0", 80), False),
        ("[::]:80", ListenAddress("::", 80), False),
        ("10.0.0.1:80", ListenAddress("10.0.0.1", 80), False),
        ("[::ffff:10.0.0.1]:80", ListenAddress("::ffff:10.0.0.1", 80), False),
        ("localhost.example.com:80", ListenAddress("localhost.example.com", 80), False),
        ("127.0.0.1.example.com:80", ListenAddress("127.0.0.1.example.com", 80), False),
        ("0:80", ListenAddress("0", 80), False),
    ],
)
def test_addresses(text: str, address: ListenAddress, is_local: bool) -> None:
    assert parse_listen(text) == [address]
    assert address.is_local is is_local


def test_several_addresses() -> None:
    assert len(parse_listen("127.0.0.1:1, [::1]:2,unix:/a")) == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8000",
        ":8000",
        "localhost",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:٨٠",
        "127.0.0.1:-1",
        "::1:8000",
        "[::1]",
        "[::g]:80",
        "[127.0.0.1]:80",
        "http://127.0.0.1:80",
        "unix:",
        "unix:/" + "x" * 107,
        "a b:80",
        "127.0.0.1:80,",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_listen(text)
    with pytest.raises(ValueError, match=r"bind cannot be read: .* Write `host:port`"):
        Settings(bind=text)


def test_tokens_open_the_door() -> None:
    settings = Settings(bind="0.0.0.0:80", api_tokens={"tökén": "Tenant A"})
    assert settings.bind == "0.0.0.0:80"
