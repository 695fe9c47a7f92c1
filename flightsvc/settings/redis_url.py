"""What ``redis_url`` may say: one server, Sentinels that know it, or a cluster.

::

    redis://[user:password@]host[:port][/db]
    rediss://…                                                    the same over TLS
    unix://[user:password@]/path/to/redis.sock[?db=n]
    redis+sentinel://[user:password@]host[:port],…/service[/db]   rediss+sentinel:// over TLS
    redis+cluster://[user:password@]host[:port],…                 rediss+cluster:// over TLS

User and password are percent-encoded. Each form takes the options of :data:`OPTIONS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl, unquote

Kind = Literal["single", "unix", "sentinel", "cluster"]
Address = tuple[str, int]

#: kind of each scheme, and whether it means TLS
SCHEMES: dict[str, tuple[Kind, bool]] = {
    "redis": ("single", False),
    "rediss": ("single", True),
    "unix": ("unix", False),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
}
EXAMPLES: dict[Kind, str] = {
    "single": "host:6379/0",
    "unix": "/path/to/redis.sock",
    "sentinel": "host1:26379,host2:26379,host3:26379/service-name",
    "cluster": "host1:6379,host2:6379,host3:6379",
}
PORTS: dict[Kind, int] = {"single": 6379, "sentinel": 26379, "cluster": 6379}

_USER = frozenset({"username", "password", "client_name"})
_TLS = frozenset(
    {
        "ssl_ca_certs",
        "ssl_ca_path",
        "ssl_certfile",
        "ssl_cert_reqs",
        "ssl_check_hostname",
        "ssl_ciphers",
        "ssl_keyfile",
        "ssl_password",
    }
)
#: options of each kind; those of TLS only with TLS
OPTIONS: dict[Kind, frozenset[str]] = {
    "single": _USER | _TLS | {"db"},
    "unix": _USER | {"db"},
    "sentinel": _USER | _TLS | {"sentinel_username", "sentinel_password"},
    "cluster": _USER | _TLS,
}
#: would turn the bytes that scripts and results are made of into text
DECODING_OPTIONS = frozenset({"decode_responses", "encoding", "encoding_errors"})

#: options that have a field of their own
_FIELDS = {"username", "password", "db"}
#: options that are one of a few words
_WORDS: dict[str, tuple[str, ...]] = {
    "ssl_cert_reqs": ("required", "optional", "none"),
    "ssl_check_hostname": ("true", "false"),
}
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+(%[A-Za-z0-9]+)?\]|[^\[\]:@,/?#\s]+)(:([0-9]{1,5}))?")
_SERVICE = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class RedisUrl:
    """A Redis URL, taken apart.

    :param addresses: host and port of the server, of the Sentinels, or of some cluster nodes.
    :param path: of the socket.
    :param service: the name under which Sentinels know the master.
    :param options: those of TLS, and ``client_name``, ``sentinel_username``, ``sentinel_password``.
    """

    kind: Kind
    tls: bool
    addresses: tuple[Address, ...] = ()
    path: str = ""
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    service: str = ""
    db: int = 0
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def parse_redis_url(url: str) -> RedisUrl:
    """Take a URL apart.

    :raises ValueError: what is wrong with it, and the fix, as the end of a sentence about the
        setting; shows no part of the URL that can hold a password.
    """
    scheme, found, rest = url.partition("://")
    if not found or scheme not in SCHEMES:
        raise ValueError(
            "must begin with redis://, rediss:// (TLS), unix:// (a socket), redis+sentinel:// or "
            "redis+cluster://."
        )
    kind, tls = SCHEMES[scheme]
    if "#" in rest:
        raise ValueError("has a #: write it as %23 if it belongs to the password, else remove it.")
    rest, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    authority, slash, path = rest.partition("/")
    user, _, hosts = authority.rpartition("@")
    username, _, password = user.partition(":")
    _check_options(kind, tls, options)
    example = f"{scheme}://{EXAMPLES[kind]}"
    service, db = _path(kind, path, options, example)
    if kind == "unix" and not path.strip("/"):
        raise ValueError(f"names no socket: write {example}.")
    return RedisUrl(
        kind,
        tls,
        addresses=() if kind == "unix" else tuple(_addresses(kind, hosts, example)),
        path=unquote(slash + path) if kind == "unix" else "",
        username=unquote(username) or options.get("username", ""),
        password=unquote(password) or options.get("password", ""),
        service=service,
        db=db,
        options={name: options[name] for name in options.keys() - _FIELDS},
    )


def redis_url_fault(url: str) -> str:
    """What is wrong with a Redis URL, and the fix; empty if it is fine."""
    try:
        parse_redis_url(url)
    except ValueError as fault:
        return str(fault)
    return ""


def _addresses(kind: Kind, hosts: str, example: str) -> Iterator[Address]:
    several = hosts.split(",")
    if len(several) > 1 and kind == "single":
        raise ValueError(
            "names several hosts: write redis+cluster:// for a cluster, or redis+sentinel:// for "
            "Sentinels."
        )
    for one in dict.fromkeys(several):
        if not one or one.startswith(":"):
            raise ValueError(f"names no host: write {example}.")
        match = _HOST.fullmatch(one)
        port = int(match[4] or PORTS[kind]) if match else 0
        if match is None or not 0 < port < 65_536:
            raise ValueError(f"has a host or port that cannot be read: write {example}.")
        yield unquote(match[1].strip("[]")), port


def _path(kind: Kind, path: str, options: Mapping[str, str], example: str) -> tuple[str, int]:
    """The service, and the number of the database."""
    if kind == "unix":
        return "", _db(options.get("db", ""), example)
    path = path.strip("/")
    if kind == "cluster":
        if path:
            raise ValueError(
                f"names a database, but a cluster has only one: write {example}, and nothing after "
                "the last host."
            )
        return "", 0
    if kind == "single":
        return "", _db(options.get("db", path), example)
    service, _, number = path.partition("/")
    if not _SERVICE.fullmatch(service):
        raise ValueError(
            f"names no service: write {example}, with the name that the Sentinels monitor."
        )
    return service, _db(number, example)


def _db(number: str, example: str) -> int:
    if number and not re.fullmatch("[0-9]{1,9}", number):
        raise ValueError(f"must name its database by number, such as {example}.")
    return int(number or 0)


def _check_options(kind: Kind, tls: bool, options: Mapping[str, str]) -> None:
    for name in sorted(DECODING_OPTIONS & set(options)):
        raise ValueError(
            f"has the option {name}, but results are bytes: remove it, whatever its value."
        )
    for name in sorted(options):
        if not name.isidentifier():  # may be half a password
            raise ValueError(
                "has an option that is no name: write a ? of a password as %3F, and options as "
                "?name=value&name=value."
            )
        if name in _TLS and not tls:
            raise ValueError(f"has the option {name}, but not TLS: write rediss, or remove it.")
        if name not in OPTIONS[kind]:
            raise ValueError(
                f"has the option {name[:40]!r}, which the service sets itself or does not know: "
                f"remove it (see <redis_timeout_ms> and <redis_connections>)."
            )
        words = _WORDS.get(name)
        if words and options[name] not in words:
            raise ValueError(f"has an option {name} that is none of {', '.join(words)}.")
        if not options[name]:
            raise ValueError(f"has the option {name} without a value: give one, or remove it.")
