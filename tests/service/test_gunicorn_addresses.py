"""Which addresses other machines can reach."""

from __future__ import annotations

import json
import shlex
import socket

import pytest

from flightsvc.serving.addresses import Address, public, unusable
from flightsvc.serving.hints import first_request


@pytest.mark.parametrize(
    "address",
    [
        ("127.0.0.1", 8000),
        ("127.9.9.9", 1),
        ("::1", 8000, 0, 0),
        ("::ffff:127.0.0.1", 8000),
        ("localhost", 8000),
        "/run/web.sock",
        "\0abstract",
    ],
)
def test_these_are_this_machines_alone(address: Address) -> None:
    assert public([address]) == []


@pytest.mark.parametrize(
    "address",
    [
        ("0.0.0.0", 8000),
        ("", 8000),
        ("::", 8000),
        ("::ffff:10.0.0.1", 8000),
        ("10.0.0.1", 8000),
        ("no-such-host.invalid", 8000),
    ],
)
def test_these_are_reachable_from_elsewhere(address: tuple[str, int]) -> None:
    assert public([("127.0.0.1", 1), address]) == [f"{address[0]}:8000"]


def test_an_inherited_socket_is_asked_where_it_is_bound() -> None:
    with (
        socket.create_server(("0.0.0.0", 0)) as wide,
        socket.create_server(("127.0.0.1", 0)) as own,
    ):
        assert len(public([wide.fileno(), own.fileno()])) == 1
        assert own.getsockname()[0] == "127.0.0.1"  # looking did not close it


def test_an_address_in_use_is_unusable_unless_it_is_held_here() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = taken.getsockname()
        assert unusable([address], held=[]) == [f"127.0.0.1:{address[1]} (Address already in use)"]
        assert unusable([address], held=[address]) == []
    assert unusable(["/no/such/folder/web.sock"], held=[]) != []


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (("127.0.0.1", 8000), "http://127.0.0.1:8000/v1/"),
        (("::1", 8000, 0, 0), "http://[::1]:8000/v1/"),
        ("/tmp/a b.sock", "http://localhost/v1/"),
    ],
)
def test_the_line_to_try_is_one_shell_command(address: Address, url: str) -> None:
    line = first_request([address], tokens=True).strip().split("\n")[-1]
    words = shlex.split(line)
    assert words[0] == "curl"
    assert any(word.startswith(url) for word in words)
    assert "Authorization: Bearer <token>" in words
    assert json.loads(words[words.index("-d") + 1])["question_number"] == 1
    assert isinstance(address, tuple) or str(address) in words
