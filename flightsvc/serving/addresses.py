"""Who can reach an address that gunicorn listens on."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
from collections.abc import Iterable
from typing import Any

from gevent.monkey import get_original

#: host and port, path of a unix socket, or number of an inherited descriptor
Address = tuple[Any, ...] | str | bytes | int


def public(addresses: Iterable[Address]) -> list[str]:
    """Those that other machines can reach, as text."""
    return [_text(address) for address in addresses if not _local(address)]


def bound(listeners: Iterable[Any]) -> list[Address]:
    """The addresses that gunicorn's open listeners are really bound to."""
    return [listener.sock.getsockname() for listener in listeners]


def unusable(wanted: Iterable[Address], held: Iterable[Address]) -> list[str]:
    """Those that cannot be bound, with the reason, as text.

    :param wanted: addresses to listen on.
    :param held: addresses that are listened on now, and will be free by then.
    """
    ports = {address[1] for address in held if isinstance(address, tuple)}
    problems = []
    for address in wanted:
        if isinstance(address, tuple) and address[1] not in ports:
            family = socket.AF_INET6 if ":" in str(address[0]) else socket.AF_INET
            with contextlib.closing(socket.socket(family)) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(address)
                except OSError as problem:
                    problems.append(f"{_text(address)} ({problem.strerror})")
        elif isinstance(address, str) and not os.path.isdir(os.path.dirname(address) or "."):
            problems.append(f"{address} (no such folder)")
    return problems


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
        resolve = get_original("socket", "getaddrinfo")  # gevent's starts threads, and forks follow
        try:
            found = {str(entry[4][0]) for entry in resolve(host or "0.0.0.0", None)}
        except OSError:
            return False
        return all(_loopback(number) for number in found)
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback


def _text(address: Address) -> str:
    if isinstance(address, tuple):
        return f"{address[0]}:{address[1]}"
    return f"fd://{address!r}"
