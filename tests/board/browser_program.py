"""A browser that does what it is told by lines of JSON; a program of its own, without gevent.

Each line is ``[number of a page, verb, argument, …]``; each answer is a line too, ``["ok", value]``
or ``["error", text]``.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, sync_playwright


class Window:
    """One page in a profile of its own, and what went wrong in it."""

    def __init__(self, browser: Browser, options: dict[str, Any]) -> None:
        self.context = browser.new_context(**options)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    def goto(self, url: str) -> int:
        response = self.page.goto(url, wait_until="domcontentloaded")
        return response.status if response else 0

    def fill(self, selector: str, text: str) -> None:
        self.page.fill(selector, text)

    def click(self, selector: str) -> None:
        self.page.click(selector)
        self.page.wait_for_load_state("domcontentloaded")

    def look(self, script: str) -> Any:
        for _ in range(5):
            try:
                return self.page.evaluate(script)
            except Error as error:  # a page that is loaded again just now
                if "context was destroyed" not in str(error):
                    raise
                self.page.wait_for_load_state("domcontentloaded")
        raise TimeoutError("the page is loaded again and again")

    def url(self) -> str:
        return self.page.url

    def cookies(self) -> list[dict[str, Any]]:
        return [dict(each) for each in self.context.cookies()]

    def picture(self, path: str) -> None:
        self.page.screenshot(path=path, full_page=True)

    def faults(self) -> list[str]:
        """What was wrong since the last time."""
        found, self.wrong = self.wrong, []
        return found

    def requests(self) -> list[str]:
        """What was asked for since the last time."""
        found, self.asked = self.asked, []
        return found

    def shut(self) -> None:
        self.context.close()


def main(executable: str) -> None:
    """Serve standard input until it ends."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-gpu"]
        )
        windows: list[Window] = []
        for line in sys.stdin:
            number, verb, *given = json.loads(line)
            try:
                if verb == "open":
                    windows.append(Window(browser, given[0]))
                    answer: list[Any] = ["ok", len(windows) - 1]
                else:
                    answer = ["ok", getattr(windows[number], verb)(*given)]
            except Exception as error:
                answer = ["error", str(error)]
            print(json.dumps(answer), flush=True)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
