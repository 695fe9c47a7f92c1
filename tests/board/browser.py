"""Pages in a headless Chromium, in a process of its own: playwright does not go with gevent."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from types import TracebackType
from typing import Any, Self

from tests.processes import ROOT, wait_until


def chromium() -> str | None:
    """Debian's browser, if it is installed."""
    return shutil.which("chromium")


class Window:
    """One page in a profile of its own."""

    def __init__(self, browser: Browser, number: int) -> None:
        self._browser = browser
        self._number = number

    def goto(self, url: str) -> int:
        """Open an address; the status that it answered with."""
        return int(self._do("goto", url))

    def fill(self, selector: str, text: str) -> None:
        self._do("fill", selector, text)

    def click(self, selector: str) -> None:
        self._do("click", selector)

    def look(self, script: str) -> Any:
        """What an expression of JavaScript is in the page."""
        return self._do("look", script)

    def text(self, selector: str) -> str | None:
        """What a reader sees of an element; None if it is not there."""
        found: str | None = self.look(f"document.querySelector({selector!r})?.innerText ?? null")
        return found

    def until(self, selector: str, text: str, within_s: float = 15.0) -> None:
        """Wait until an element has this in it."""
        wait_until(lambda: text in (self.text(selector) or ""), within_s)

    def url(self) -> str:
        return str(self._do("url"))

    def cookies(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._do("cookies")
        return found

    def picture(self, path: str) -> None:
        self._do("picture", path)

    def faults(self) -> list[str]:
        """Errors in the console since the last time."""
        found: list[str] = self._do("faults")
        return found

    def requests(self) -> list[str]:
        """Addresses that were asked for since the last time."""
        found: list[str] = self._do("requests")
        return found

    def close(self) -> None:
        self._do("shut")

    def _do(self, verb: str, *given: Any) -> Any:
        return self._browser.do(self._number, verb, *given)


class Browser:
    """A context manager; :meth:`open` opens pages.

    :param executable: the browser's program.
    """

    def __init__(self, executable: str) -> None:
        self._command = [sys.executable, "-m", "tests.board.browser_program", executable]
        self._process: subprocess.Popen[str] | None = None

    def open(
        self,
        *,
        width: int = 1200,
        height: int = 800,
        dark: bool = False,
        javascript: bool = True,
        scale: float = 1,
    ) -> Window:
        """An empty page of this size."""
        options = {
            "viewport": {"width": width, "height": height},
            "color_scheme": "dark" if dark else "light",
            "java_script_enabled": javascript,
            "device_scale_factor": scale,
        }
        return Window(self, int(self.do(0, "open", options)))

    def do(self, number: int, verb: str, *given: Any) -> Any:
        """Have a page do something."""
        process = self._process
        assert process is not None, "not started"
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([number, verb, *given]) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, "the browser has ended"
        kind, value = json.loads(line)
        assert kind == "ok", f"{verb} {given}: {value}"
        return value

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process, self._process = self._process, None
        assert process is not None, "not started"
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
