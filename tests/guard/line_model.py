"""A model behind a real TCP socket: one line in, one line out, as its script says."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import gevent
from gevent import socket
from gevent.server import StreamServer

from flightsvc.errors import (
    AnswerInvalid,
    ProviderRateLimited,
    ProviderRejected,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnreachable,
)

#: a step: seconds of thought, then this line; `cut` closes the connection instead
Step = tuple[float, str]
OK: Step = (0.0, "200")
DOWN: Step = (0.0, "503")
CUT: Step = (0.0, "cut")


class LineModel:
    """Serves on a free port of 127.0.0.1; counts calls and open connections.

    :param script: one step for each call, in order; after the last, ``then`` for ever.
    """

    def __init__(self, *script: Step, then: Step = OK) -> None:
        self._script = list(script)
        self._then = then
        self.arrivals: list[float] = []
        self.open = 0
        self.most_open = 0
        self._server = StreamServer(("127.0.0.1", 0), self._handle)
        self._server.start()
        self._address = ("127.0.0.1", self._server.server_port)

    @property
    def calls(self) -> int:
        return len(self.arrivals)

    def close(self) -> None:
        self._server.stop()

    def ask(self, timeout_s: float) -> str:
        """One call of the model, as a provider makes it: closes its socket, raises typed errors."""
        try:
            with socket.create_connection(self._address, timeout=timeout_s) as sock:
                sock.sendall(b"ask\n")
                line = sock.makefile("r").readline().strip()
        except TimeoutError as exc:
            raise ProviderTimeout from exc
        except OSError as exc:
            raise ProviderUnreachable from exc
        return _read(line)

    def _handle(self, sock: socket.socket, _address: object) -> None:
        self.arrivals.append(monotonic())
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        delay_s, line = self._script.pop(0) if self._script else self._then
        try:
            sock.recv(10)
            gevent.sleep(delay_s)
            if line != "cut":
                sock.sendall(line.encode() + b"\n")
        finally:
            self.open -= 1
            sock.close()


def _read(line: str) -> str:
    status, _, rest = line.partition(" ")
    errors: dict[str, Callable[[], Exception]] = {
        "": ProviderUnreachable,
        "400": lambda: ProviderRejected(upstream_status=400),
        "401": lambda: ProviderRejected(upstream_status=401),
        "429": lambda: ProviderRateLimited(retry_after_s=float(rest) if rest else None),
        "503": lambda: ProviderUnavailable(upstream_status=503),
        "junk": AnswerInvalid,
    }
    if status in errors:
        raise errors[status]()
    return line
