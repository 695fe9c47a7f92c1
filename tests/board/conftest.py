from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.board.browser import Browser, Window, chromium
from tests.board.nodes import TOKEN, Site, site


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser for all tests."""
    executable = chromium()
    if executable is None:
        pytest.skip("wants Debian's chromium: apt-get install chromium")
    with Browser(executable) as one:
        yield one


@pytest.fixture(scope="module")
def nodes() -> Iterator[Site]:
    """Two nodes of one worker each."""
    with site() as one:
        yield one


def sign_in(window: Window, url: str) -> None:
    """As an operator does."""
    assert window.goto(url) == 401
    window.fill("#token", TOKEN)
    window.click("button")
    assert window.url() == url
    window.faults()  # browsers tell of a 401 in the console


@pytest.fixture
def window(browser: Browser, nodes: Site) -> Iterator[Window]:
    """A page that shows the first node's flights."""
    one = browser.open()
    sign_in(one, nodes.page())
    yield one
    one.close()
