"""The status page in a real browser, over two real nodes."""

from __future__ import annotations

import functools
import os
import re
import signal
import time

import gevent
import pytest

from tests.board.browser import Browser, Window
from tests.board.conftest import sign_in
from tests.board.nodes import SECRET, SESSION, TOKEN, Site
from tests.processes import wait_until


def cells(window: Window) -> list[list[str]]:
    """The table of flights as a reader sees it."""
    script = (
        "[...document.querySelectorAll('#flights tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    found: list[list[str]] = window.look(script)
    return found


def has_rows(window: Window, number: int) -> bool:
    return len(cells(window)) == number


def owner(nodes: Site, node: int) -> str:
    return str(nodes.state(node)["worker"]["id"])


def test_a_flight_appears_with_who_waits_and_vanishes(window: Window, nodes: Site) -> None:
    window.until("#line", "live")
    first = [nodes.ask(0, "gate-one") for _ in range(3)]
    wait_until(lambda: nodes.model.stats()["open_calls"] == 1)
    asking = [*first, *(nodes.ask(1, "gate-one") for _ in range(2))]
    wait_until(lambda: cells(window) and cells(window)[0][5] == "1")

    (row,) = cells(window)

    stage, state, age, who, callers, workers, heartbeat, flight = row
    assert (stage, state, callers, workers) == ("evaluation acme", "running", "3", "1")
    assert who.split() == [owner(nodes, 0), "here"]
    assert re.fullmatch(r"\d+(\.\d)? s", age)
    assert re.fullmatch(r"\d\.\d s", heartbeat)
    before = float(age.split()[0])
    wait_until(lambda: float(cells(window)[0][2].split()[0]) > before)

    nodes.model.open_gate("gate-one")
    replies = [each.get() for each in asking]

    assert {reply.headers["flight-id"][:8] for reply in replies} == {flight}
    window.until("#total", "0")
    assert cells(window) == []
    assert window.faults() == []


def test_the_other_node_shows_the_same_flight(browser: Browser, nodes: Site) -> None:
    window = browser.open()
    sign_in(window, nodes.page(1))
    asking = nodes.ask(0, "gate-two")
    wait_until(lambda: len(cells(window)) == 1)

    (row,) = cells(window)

    assert row[3] == owner(nodes, 0)
    assert row[4] == "0"
    nodes.model.open_gate("gate-two")
    assert asking.get().status == 200
    wait_until(lambda: cells(window) == [])
    window.close()


def test_nothing_that_somebody_asked_is_shown(window: Window, nodes: Site) -> None:
    nodes.shut_gates()
    asking = nodes.ask(1, "gate-three, says the candidate")
    wait_until(lambda: cells(window))

    seen = window.look("document.documentElement.outerHTML") + str(nodes.state())

    for word in (SECRET, SESSION, "candidate", TOKEN, "token-acme"):
        assert word not in seen
    nodes.model.open_gate("gate-three")
    asking.get()


def test_a_paused_module_shows_within_two_seconds(window: Window, nodes: Site) -> None:
    window.until("#line", "live")
    for _ in range(3):  # on a machine that stalls
        nodes.switch("PUT", "chat", "nonsense <b>all</b> day")
        said_at = time.monotonic()
        window.until("#modules", "nonsense <b>all</b> day")
        took_s = time.monotonic() - said_at
        text = window.text("#modules") or ""
        nodes.switch("DELETE", "chat")
        wait_until(lambda: window.text("#modules") is None)
        if took_s < 2:
            break

    assert took_s < 2
    assert "stage:chat" in text
    assert re.search(r"paused nonsense .* by anna, since 20\d\d-", text)
    assert window.faults() == []


def test_savings_rise(window: Window, nodes: Site) -> None:
    def seen() -> list[int]:
        return [int(window.text(f"#{name}") or 0) for name in ("asked", "calls", "saved")]

    before = seen()
    words = f"An index costs space, on day {time.monotonic()}."
    for node in (0, 1, 0, 1, 0):
        assert nodes.ask(node, words).get().status == 200

    wait_until(lambda: seen()[0] >= before[0] + 5)

    asked, calls, saved = seen()
    assert calls == before[1] + 1
    assert saved == before[2] + 4
    assert float(window.text("#percent") or 0) == round(100 * saved / asked, 1)


def test_sign_in_and_out(browser: Browser, nodes: Site) -> None:
    window = browser.open()
    assert window.goto(nodes.page()) == 401
    assert window.text("#board") is None
    window.fill("#token", "guessed")
    window.click("button")
    assert "not known" in (window.text("[role=alert]") or "")
    assert window.cookies() == []

    window.fill("#token", TOKEN)
    window.click("button")

    assert window.url() == nodes.page()
    window.until("#line", "live")
    (cookie,) = window.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/flights")
    assert TOKEN not in cookie["value"]
    assert 11 * 3600 < cookie["expires"] - time.time() <= 12 * 3600
    assert window.goto(nodes.page(1)) == 200  # another machine with the same tokens

    window.click("header button")
    assert window.text("#token") is not None
    assert window.cookies() == []
    assert window.goto(nodes.page()) == 401
    window.close()


@pytest.mark.parametrize("dark", [True, False])
def test_dark_and_light(browser: Browser, nodes: Site, dark: bool) -> None:
    window = browser.open(dark=dark)
    sign_in(window, nodes.page())

    for selector in (":root", ".tile"):
        paper = _brightness(window, selector, "backgroundColor")
        ink = _brightness(window, selector, "color")
        assert (paper < 0.3 < 0.7 < ink) if dark else (ink < 0.3 < 0.7 < paper)
    window.close()


def _brightness(window: Window, selector: str, name: str) -> float:
    script = f"getComputedStyle(document.querySelector('{selector}')).{name}"
    return sum(int(part) for part in re.findall(r"\d+", window.look(script))[:3]) / (3 * 255)


def test_a_phone_needs_no_scrolling_aside(browser: Browser, nodes: Site) -> None:
    nodes.shut_gates()
    window = browser.open(width=360, height=740)
    sign_in(window, nodes.page())
    assert window.look("document.documentElement.scrollWidth") <= 360
    asking = [nodes.ask(each % 2, f"gate-one {each}") for each in range(5)]
    nodes.switch("PUT", "chat", "a_word_that_is_longer_than_any_telephone_is_wide" * 5)
    nodes.switch("PUT", "evaluation/rollback", "x" * 300)
    wait_until(lambda: len(cells(window)) == 5 and "rolled back" in (window.text("#modules") or ""))

    wide = window.look("document.documentElement.scrollWidth")
    sticks_out = window.look(
        "[...document.body.querySelectorAll('*')].filter(e => e.tagName != 'THEAD' &&"
        " !e.closest('thead') && e.getBoundingClientRect().right > 360.5).map(e => e.outerHTML)"
    )

    assert (wide <= 360, sticks_out) == (True, [])
    assert "callers here" in window.look(
        "getComputedStyle(document.querySelector('td:nth-child(5)'), '::before').content"
    )
    nodes.switch("DELETE", "chat")
    nodes.switch("DELETE", "evaluation/rollback")
    nodes.model.open_gate("gate-one")
    gevent.joinall(asking)
    window.close()


def test_it_loads_nothing_from_elsewhere(browser: Browser, nodes: Site) -> None:
    window = browser.open()
    sign_in(window, nodes.page())
    window.until("#line", "live")
    asked = window.requests()

    page = nodes.page()
    assert {each for each in asked if not each.startswith("data:")} == {page, page + "/events"}
    assert all(TOKEN not in each for each in asked)
    assert window.faults() == []
    window.close()


def test_the_newest_first(window: Window, nodes: Site) -> None:
    nodes.shut_gates()
    asking = []
    for number in range(3):
        asking.append(nodes.ask(number % 2, f"gate-two {number}"))
        wait_until(functools.partial(has_rows, window, number + 1))
    old = [row[7] for row in cells(window)]

    window.click("nav a")
    window.until("#line", "live")
    wait_until(lambda: [row[7] for row in cells(window)] == old[::-1])

    assert window.url() == nodes.page() + "?sort=newest"
    window.click("nav a")
    assert window.url() == nodes.page()
    assert [row[7] for row in cells(window)] == old
    nodes.model.open_gate("gate-two")
    gevent.joinall(asking)
    assert window.faults() == []


def test_without_javascript_it_asks_again_by_itself(browser: Browser, nodes: Site) -> None:
    nodes.shut_gates()
    window = browser.open(javascript=False)
    sign_in(window, nodes.page())
    assert "again every 5 s" in (window.text("#line") or "")
    asking = nodes.ask(0, "gate-three, once more")

    wait_until(lambda: "evaluation" in (window.text("#flights") or ""), 20)

    nodes.model.open_gate("gate-three")
    assert asking.get().status == 200
    wait_until(lambda: window.text("#flights") is None, 20)
    window.click("header button")
    assert window.text("#token") is not None
    window.close()


def test_a_text_that_is_marked_stays(window: Window, nodes: Site) -> None:
    window.until("#line", "live")
    window.look("getSelection().selectAllChildren(document.getElementById('coordination'))")
    marked = window.look("document.getElementById('coordination').isConnected")
    time.sleep(2.2)  # two events

    assert marked
    assert window.look("getSelection().toString().trim()") == "ok"
    window.look("getSelection().removeAllRanges()")


def test_the_line_comes_back_after_its_worker_was_replaced(window: Window, nodes: Site) -> None:
    window.until("#line", "live")
    before = window.text("#pid")
    (pid,) = nodes.nodes[0].worker_pids()
    assert before == str(pid)

    os.kill(pid, signal.SIGTERM)

    wait_until(lambda: window.text("#pid") not in (None, before), 40)
    window.until("#line", "live", 20)
    assert window.text("#pid") == str(nodes.nodes[0].worker_pids()[0])
    window.faults()


def test_a_page_whose_sign_in_is_over_asks_for_it(window: Window, nodes: Site) -> None:
    window.until("#line", "live")
    signed_out = window.look(
        "fetch('flights/sign-out', {method: 'POST', redirect: 'manual'}).then(_ => true)"
    )
    assert signed_out
    (pid,) = nodes.nodes[0].worker_pids()
    os.kill(pid, signal.SIGTERM)  # the line breaks, and a new one is refused

    wait_until(lambda: window.text("#token") is not None, 40)
    window.faults()
