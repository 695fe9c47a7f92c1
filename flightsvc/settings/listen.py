"""Listen addresses as users write them."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

FORMS = "`host:port`, `[v6]:port` or `unix:/path`"
#: longest path of a unix socket, in bytes (sun_path of Linux less its NUL)
SOCKET_PATH_BYTES = 107

_TCP = re.compile(r"(?:\[(?P<v6>[^\]]*)\]|(?P<host>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """One address: ``host`` and ``port``, or ``path`` of a unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it. Names but ``localhost`` are not looked up."""
        if self.path or self.host.lower() == "localhost":
            return True
        try:
            ip = ipaddress.ip_address(self.host)
        except ValueError:
            return False
        mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
        return (mapped or ip).is_loopback


def parse_listen(text: str) -> list[ListenAddress]:
    """The addresses of a ``bind``.

    :raises ValueError: one of them cannot be read; says why.
    """
    return [_parse(part.strip()) for part in text.split(",")]


def _parse(text: str) -> ListenAddress:
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if path.startswith("//"):
            path = path[2:]
        if not path:
            raise ValueError(f"{text!r} has no path")
        if len(path.encode()) > SOCKET_PATH_BYTES:
            raise ValueError(f"a socket's path may have at most {SOCKET_PATH_BYTES} bytes")
        return ListenAddress(path=path)
    match = _TCP.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no address")
    if match["v6"] is not None:
        ipaddress.IPv6Address(match["v6"])
    port = int(match["port"])
    if port > 65_535:
        raise ValueError(f"there is no port {port}")
    return ListenAddress(host=match["v6"] or match["host"], port=port)
