"""Watches a server: every command it gets, in order, told apart by script."""

from __future__ import annotations

import os
import re
import socket
from collections import Counter
from dataclasses import dataclass
from hashlib import sha1
from types import TracebackType
from typing import Self

import redis

from flightsvc.flight import verbs
from flightsvc.store import scripts
from tests.support.redis_server import RedisServer

_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
_VERBS = {sha1(scripts.source(verb.name)).hexdigest(): verb.name for verb in verbs.ALL}


@dataclass(frozen=True)
class Command:
    """One command; what scripts do themselves is left out.

    :param verb: the script that it runs, or "".
    """

    words: tuple[str, ...]
    verb: str

    @property
    def name(self) -> str:
        """The script, or the command in capitals."""
        return self.verb or self.words[0].upper()


class Watch:
    """The commands of all clients while it is open (MONITOR)."""

    def __init__(self, server: RedisServer) -> None:
        self._path = server.socket_path
        self._client: redis.Redis = server.client()
        self._socket = socket.socket(socket.AF_UNIX)
        self._rest = ""

    def commands(self) -> list[Command]:
        """What came since it was opened, or last asked."""
        mark = os.urandom(8).hex()
        self._client.echo(mark)
        while mark not in self._rest:
            self._rest += self._socket.recv(65_536).decode()
        before, _, rest = self._rest.partition(mark)
        self._rest = rest.partition("\n")[2]
        return [_command(line) for line in before.splitlines()[:-1] if " lua] " not in line]

    def scripts(self) -> Counter[str]:
        """How often each script was called meanwhile, but for heartbeats and looks."""
        return Counter(
            command.verb
            for command in self.commands()
            if command.verb and command.verb not in ("beat", "inspect")
        )

    def __enter__(self) -> Self:
        # a script that the server does not know costs more calls, once in its life
        for verb in verbs.ALL:
            self._client.script_load(scripts.source(verb.name))
        self._socket.settimeout(5)
        self._socket.connect(self._path)
        self._socket.sendall(b"MONITOR\r\n")
        assert self._socket.recv(5) == b"+OK\r\n"
        self.commands()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()
        self._client.close()


def _command(line: str) -> Command:
    words = tuple(_WORD.findall(line.partition("] ")[2]))
    verb = _VERBS.get(words[1], "") if words[0].upper() == "EVALSHA" else ""
    return Command(words, verb)
