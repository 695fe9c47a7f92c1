"""Who can reach an address that gunicorn listens on."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from typing import Any

#: host and port, path of a unix socket, or number of an inherited descriptor
Address = tuple[Any, ...] | str | bytes | int


def public(addresses: Iterable[Address]) -> list[str]:
    """Those that other machines can reach, as text."""
    return [_text(address) for address in addresses if not _local(address)]


def bound(listeners: Iterable[Any]) -> list[Address]:
    """The addresses that gunicorn's open listeners are really bound to."""
    return [listener.sock.getsockname() for listener in listeners]


def _local(address: Address) -> bool:
    if isinstance(address, int):
        with socket.socket(fileno=socket.dup(address)) as inherited:
            return _local(inherited.getsockname())
    if isinstance(address, (str, bytes)):
        return True  # a unix socket
    return _loopback(str(address[0]))


def _loopback(host: str) -> bool:
    """Whether a host, by number or by every address of its name, is this machine alone."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        try:
            found = {str(entry[4][0]) for entry in socket.getaddrinfo(host or "0.0.0.0", None)}
        except OSError:
            return False
        return all(_loopback(number) for number in found)
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback


def _text(address: Address) -> str:
    if isinstance(address, tuple):
        return f"{address[0]}:{address[1]}"
    return f"fd://{address!r}"
