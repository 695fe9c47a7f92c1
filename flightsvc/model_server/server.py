"""The model server: connections, routes, and the script and counters behind them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import gevent
from gevent import Greenlet
from gevent.event import Event
from gevent.pool import Pool
from gevent.server import StreamServer
from gevent.socket import socket as GeventSocket  # noqa: N812
from gevent.socket import wait_read

from flightsvc.errors import SettingsError
from flightsvc.model_server import wire, workflow
from flightsvc.model_server.http import (
    BadRequest,
    ClientGone,
    Connection,
    EndOfConnection,
    Request,
    ResetConnection,
    response_head,
)
from flightsvc.model_server.play import play
from flightsvc.model_server.rules import Script, read_script
from flightsvc.model_server.script import Call, ScriptRunner
from flightsvc.model_server.stats import Stats

Handler = Callable[[Connection, Request], None]


class ModelServer:
    """One listening model server.

    :param address: host and port; port 0 takes a free one.
    :param script: how calls are answered, until ``PUT /_script`` says otherwise.
    """

    def __init__(self, address: tuple[str, int], script: Script | None = None) -> None:
        self._first_script = script or Script()
        self._runner = ScriptRunner(self._first_script)
        self._stats = Stats()
        self._gates: dict[str, Event] = {}
        self._open: dict[Connection, Greenlet[..., object]] = {}
        self._pool = Pool()
        self._server = StreamServer(address, self._serve, spawn=self._pool, backlog=1024)
        self._routes: dict[tuple[str, str], Handler] = {
            ("POST", "/v1/chat/completions"): self._complete,
            ("POST", "/workflow/v1/chat/completions"): self._run_workflow,
            ("POST", "/workflow/v1/upload_file"): self._upload,
            ("GET", "/v1/models"): self._models,
            ("GET", "/_stats"): self._show_stats,
            ("PUT", "/_script"): self._set_script,
            ("POST", "/_reset"): self._reset,
        }

    def start(self) -> str:
        """Listen; returns the address, as ``http://host:port``."""
        self._server.start()
        host = self._server.server_host or ""
        return f"http://{f'[{host}]' if ':' in host else host}:{self._server.server_port}"

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._server.server_port or 0

    def stop(self) -> None:
        """Close everything, at once."""
        self._server.close()
        self._pool.kill()

    def _serve(self, sock: GeventSocket, _address: object) -> None:
        """One connection, from its accept to its end."""
        conn = Connection(sock)
        self._open[conn] = gevent.getcurrent()  # type: ignore[assignment]
        reset = False
        try:
            while (request := conn.read_request()) is not None:
                self._handle(conn, request)
                if not request.keep_alive:
                    break
        except BadRequest as error:
            with suppress(EndOfConnection):
                _reply(conn, 400, wire.error_body(400, str(error)), keep_alive=False)
        except EndOfConnection as end:
            reset = isinstance(end, ResetConnection)
        finally:
            del self._open[conn]
            conn.close(reset=reset)

    def _handle(self, conn: Connection, request: Request) -> None:
        path = request.path.partition("?")[0]
        conn.control = conn.control or not path.startswith(("/v1/", "/workflow/"))
        handler = self._routes.get((request.method, path))
        if handler is None and request.method == "POST" and path.startswith("/_gates/"):
            handler = self._open_gate
        if handler is not None:
            handler(conn, request)
            return
        known = any(path == known_path for _, known_path in self._routes)
        status = 405 if known else 404
        _reply(conn, status, wire.error_body(status, "no such thing here"), request.keep_alive)

    def _complete(self, conn: Connection, request: Request) -> None:
        document = _object(request.body)
        if document is None or not isinstance(document.get("messages"), list):
            error = wire.error_body(400, "the body must be a JSON object with messages")
            self._refuse(conn, request, 400, error)
            return
        self._play(conn, request, Call.of(request, document))

    def _run_workflow(self, conn: Connection, request: Request) -> None:
        document = _object(request.body)
        fault = "a JSON object" if document is None else workflow.fault(document)
        if document is None or fault:
            self._refuse(conn, request, 200, {"code": 460, "message": f"the body needs {fault}"})
            return
        self._play(conn, request, Call.of(request, document, "workflow"))

    def _upload(self, conn: Connection, request: Request) -> None:
        name, content = workflow.file_of(request)
        if content is None:
            error = {"code": 460, "message": "the body must be a form with a file"}
            self._refuse(conn, request, 200, error)
            return
        call = Call({"name": name}, content, Call.of(request, {}).bearer, "upload")
        self._play(conn, request, call)

    def _refuse(self, conn: Connection, request: Request, status: int, body: object) -> None:
        self._note_use(conn)
        _reply(conn, status, body, request.keep_alive)

    def _note_use(self, conn: Connection) -> None:
        if not conn.used:
            conn.used = True
            self._stats.connections += 1

    def _play(self, conn: Connection, request: Request, call: Call) -> None:
        """Answer a call as the script says, and count it."""
        self._note_use(conn)
        rule, behave = self._runner.choose(call)
        counted = self._stats.call(call.key, rule, upload=call.kind == "upload")
        with counted, _told_when_client_leaves(conn):
            play(conn, call, behave, self._wait_at_gate, keep_alive=request.keep_alive)
        if behave.close_after_ms is not None:
            gevent.sleep(behave.close_after_ms / 1000)
            raise EndOfConnection

    def _models(self, conn: Connection, request: Request) -> None:
        _reply(conn, 200, wire.models_body(), request.keep_alive)

    def _show_stats(self, conn: Connection, request: Request) -> None:
        open_connections = sum(not each.control for each in self._open)
        _reply(conn, 200, self._stats.as_json(open_connections), request.keep_alive)

    def _set_script(self, conn: Connection, request: Request) -> None:
        try:
            self._runner = ScriptRunner(read_script(request.body))
        except SettingsError as error:
            _reply(conn, 400, wire.error_body(400, str(error)), request.keep_alive)
            return
        _reply(conn, 200, {"rules": len(self._runner.script.rules)}, request.keep_alive)

    def _reset(self, conn: Connection, request: Request) -> None:
        """Begin anew: first script, no counts, gates shut, all other connections closed."""
        others = [task for each, task in self._open.items() if each is not conn]
        gevent.killall(others)
        self._runner = ScriptRunner(self._first_script)
        self._stats = Stats()
        self._gates = {}
        _reply(conn, 200, {}, request.keep_alive)

    def _open_gate(self, conn: Connection, request: Request) -> None:
        self._gate(request.path.rpartition("/")[2]).set()
        _reply(conn, 200, {}, request.keep_alive)

    def _gate(self, name: str) -> Event:
        return self._gates.setdefault(name, Event())

    def _wait_at_gate(self, name: str) -> None:
        self._gate(name).wait()


def _object(body: bytes) -> dict[str, Any] | None:
    """The JSON object in a body; None if it is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _reply(conn: Connection, status: int, body: object, keep_alive: bool) -> None:
    """Answer one of the server's own pages, or a request that is none."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(data))}
    if not keep_alive:
        headers["Connection"] = "close"
    conn.send(response_head(status, headers) + data)


@contextmanager
def _told_when_client_leaves(conn: Connection) -> Iterator[None]:
    """Raise :class:`ClientGone` inside as soon as the client closes, whatever is waited for.

    Bytes of a next request that come early end the watch: behind them no end can be seen.
    """
    answering = gevent.getcurrent()

    def watch() -> None:
        wait_read(conn.fileno())
        if conn.client_has_gone():
            answering.kill(ClientGone, block=False)  # type: ignore[attr-defined]

    watcher = gevent.spawn(watch)
    try:
        yield
    finally:
        watcher.kill()
