"""The status page's lines: what they cost, how many there may be, and how they end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Self

import gevent
import pytest
from gevent.event import Event

from flightsvc.app import FlightSvc, close_worker, create_app
from flightsvc.errors import CoordinationUnavailable, TooManyWaiters
from flightsvc.settings import Settings
from flightsvc.web import board as routes
from flightsvc.web.board_lookout import MOST_PAGES, Lookout, most_pages
from flightsvc.web.board_shapes import BoardShown
from flightsvc.web.board_view import gather
from tests.board.nodes import ANNA, Site, site
from tests.processes import wait_until
from tests.support.data import DATA_DIR
from tests.support.redis_server import RedisServer
from tests.support.service import Service


class Line:
    """One open line, read event by event."""

    def __init__(self, service: Service) -> None:
        host, _, port = service.url.removeprefix("http://").partition(":")
        self._connection = http.client.HTTPConnection(host, int(port), timeout=30)
        self._connection.request("GET", "/flights/events", headers=ANNA)
        self.answer = self._connection.getresponse()

    def event(self) -> dict[str, Any]:
        """The next one."""
        while True:
            line = self.answer.readline().decode()
            assert line, "the line has ended"
            if line.startswith("data: "):
                found: dict[str, Any] = json.loads(line.removeprefix("data: "))
                return found

    def rest(self) -> bytes:
        """Until it ends."""
        return self.answer.read()

    def close(self) -> None:
        self.answer.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Site]:
    settings = {
        "FLIGHTSVC_MAX_WAITERS": "90",
        "FLIGHTSVC_WORKER_CONNECTIONS": "100",
        "FLIGHTSVC_BREAKER_FAILURES": "2",
        "FLIGHTSVC_STAGES__EVALUATION__RETRY_DELAYS_MS": "[]",
    }
    with site(settings) as one:
        yield one


def open_lines(service: Service, number: int) -> list[Line]:
    """So many; those that were closed before are gone when their next event was sent."""
    lines: list[Line] = []

    def one_more() -> bool:
        line = Line(service)
        if line.answer.status == 200:
            lines.append(line)
        else:
            line.close()
        return len(lines) == number

    wait_until(one_more)
    return lines


def test_events_come_about_every_second(nodes: Site) -> None:
    with Line(nodes.nodes[0]) as line:
        assert line.answer.headers["Content-Type"] == "text/event-stream"
        assert line.answer.headers["Cache-Control"] == "no-store"
        assert line.answer.readline() == b"retry: 1000\n"
        began = time.monotonic()
        events = [line.event() for _ in range(4)]

    assert time.monotonic() - began > 2
    assert len({event["html"] for event in events}) == 4
    assert all('id="total"' in event["html"] for event in events)


def test_lines_leave_room_for_others(nodes: Site) -> None:
    node = nodes.nodes[0]
    lines = open_lines(node, 5)

    with Line(node) as refused:
        assert refused.answer.status == 503
        assert int(refused.answer.headers["Retry-After"]) >= 1
        assert json.loads(refused.rest())["code"] == "TOO_MANY_WAITERS"
    assert node.get("/healthz").status == 200
    assert nodes.state()["live"]["whole"]
    assert node.get("/flights", headers=ANNA).status == 200

    for line in lines[1:]:
        line.close()

    lines = [lines[0], *open_lines(node, 4)]
    for line in lines:
        line.event()
        line.close()


def test_a_redis_that_is_frozen_is_shown_and_holds_nothing_up(nodes: Site) -> None:
    node = nodes.nodes[0]
    (line,) = open_lines(node, 1)
    with line:
        line.event()
        nodes.redis.freeze()
        try:
            wait_until(lambda: ">degraded<" in line.event()["html"])
            began = time.monotonic()
            told = nodes.state()
            took_s = time.monotonic() - began
            assert (told["coordination"], told["live"]["whole"]) == ("degraded", False)
            assert took_s < 5
            assert node.get("/healthz", timeout_s=2).status == 200
        finally:
            nodes.redis.thaw()
        wait_until(lambda: ">degraded<" not in line.event()["html"])
    wait_until(lambda: nodes.state()["live"]["whole"])


def test_an_open_breaker_is_seen_on_every_node(nodes: Site) -> None:
    nodes.model.script([{"behave": {"status": 500}}])
    for number in range(2):
        assert nodes.ask(0, f"It fails. {number}").get().status == 503

    wait_until(lambda: [each["state"] for each in nodes.state(0)["breakers"]] == ["open"])
    wait_until(lambda: nodes.state(1)["breakers"])
    (mine,), (heard,) = nodes.state(0)["breakers"], nodes.state(1)["breakers"]

    assert (mine["provider"], mine["model"], mine["state"]) == ("openai", "some-model", "open")
    assert 0 < mine["open_for_s"] <= 30
    assert (heard["model"], heard["state"]) == ("some-model", "open")


def test_lines_end_when_their_worker_stops() -> None:
    with site({"FLIGHTSVC_GRACE_S": "20"}) as nodes:
        node = nodes.nodes[0]
        lines = [Line(node) for _ in range(3)]
        for line in lines:
            line.event()
        began = time.monotonic()

        os.kill(node.pid, signal.SIGTERM)
        for line in lines:
            line.rest()  # its whole end: no error
        took_s = time.monotonic() - began

        assert node.stop() == 0
        assert took_s < 10  # not the grace that flights are given
        assert "Traceback" not in node.log()


# -- one look for all, in this process ---------------------------------------------------------


@pytest.fixture
def seen() -> Iterator[BoardShown]:
    app = create_app(
        Settings(mode="local", operator_tokens={"a": "b"}, data_dir=DATA_DIR)
    )
    yield gather(app.extensions["flightsvc"])
    close_worker(app)


def test_all_lines_share_one_look_a_second(seen: BoardShown) -> None:
    looks: list[float] = []

    def look() -> BoardShown:
        looks.append(time.monotonic())
        gevent.sleep(0.01)
        return seen.model_copy()

    lookout = Lookout(look, 10)

    def watch() -> int:
        lookout.enter()
        found, last = 0, None
        while found < 3:
            new = lookout.next(last, 0.2)
            if new is not None:
                found, last = found + 1, new
        lookout.leave()
        return found

    watching = [gevent.spawn(watch) for _ in range(10)]
    asking = [gevent.spawn(lookout.now) for _ in range(10)]
    assert [each.get(timeout=20) for each in watching] == [3] * 10
    gevent.joinall(asking)
    apart = [later - sooner for sooner, later in pairwise(looks)]
    assert len(looks) <= 4
    assert min(apart) > 0.9

    gevent.sleep(1.2)  # nobody looks any more
    count = len(looks)
    gevent.sleep(1.5)
    assert len(looks) == count


def test_who_asks_alone_is_told_the_present(seen: BoardShown) -> None:
    looks = []

    def look() -> BoardShown:
        looks.append(time.monotonic())
        return seen.model_copy()

    lookout = Lookout(look, 1)
    first = lookout.now()
    assert lookout.now() is first
    gevent.sleep(1.1)
    assert lookout.now() is not first
    assert len(looks) == 2


def test_a_look_that_fails_ends_nothing(seen: BoardShown) -> None:
    fails = [CoordinationUnavailable(), ZeroDivisionError()]

    def look() -> BoardShown:
        if fails:
            raise fails.pop()
        return seen

    lookout = Lookout(look, 1)
    lookout.enter()
    with pytest.raises(TooManyWaiters):
        lookout.enter()
    wait_until(lambda: lookout.next(None, 0.1) is seen, 10)
    lookout.leave()
    assert lookout.pages == 0


@pytest.mark.parametrize(
    ("waiters", "connections", "most"),
    [(900, 1000, MOST_PAGES), (900, 910, 5), (900, 901, 0), (10, 5_000, MOST_PAGES)],
)
def test_how_many_there_may_be(waiters: int, connections: int, most: int) -> None:
    settings = Settings(mode="local", max_waiters=waiters, worker_connections=connections)
    assert most_pages(settings) == most


def test_a_silent_line_says_that_it_is_alive(
    monkeypatch: pytest.MonkeyPatch, redis_server: RedisServer
) -> None:
    monkeypatch.setattr(routes, "KEEP_ALIVE_S", 0.1)
    app = create_app(
        Settings(mode="local", operator_tokens={"token-anna": "anna"}, data_dir=DATA_DIR)
    )
    service: FlightSvc = app.extensions["flightsvc"]
    board, never = routes.Board(service), Event()

    def look() -> BoardShown:
        never.wait()
        return gather(service)

    board.lookout = Lookout(look, 1)
    line = routes._line(service, board, newest=False)

    assert next(line) == b"retry: 1000\n\n"
    assert next(line) == b": nothing new\n\n"
    service.drain(0)
    assert list(line) == []
    close_worker(app)
