"""``flightsvc demo`` from outside: what it shows, how it fails, and what it leaves (nothing)."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest

from flightsvc.demo.cli import MODEL_MS, TIMES
from flightsvc.demo.samples import DIFFERENT, SAMPLES
from tests.demo.demo_process import DemoProcess

ROUND = TIMES + len(DIFFERENT)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


def table(output: str) -> dict[str, dict[str, str]]:
    """The printed table: line → column → cell; lines of a round are named ``round/line``."""
    lines = output.splitlines()
    heading = next(number for number, line in enumerate(lines) if line.split()[:1] == ["asked"])
    ends = {found[0]: found.end() for found in re.finditer(r"\S+", lines[heading])}
    found: dict[str, dict[str, str]] = {}
    part = ""
    for line in lines[heading + 1 :]:
        if not line:
            break
        if not line.startswith(" "):
            part = line
            continue
        start, row = 15, {}
        for column, end in ends.items():
            row[column] = line[start:end].strip()
            start = end
        found[f"{part}/{line[:15].strip()}"] = row
    return found


def number(rows: dict[str, dict[str, str]], row: str, *columns: str) -> int:
    return sum(int(rows[row][column]) for column in columns)


def columns_wide(line: str) -> int:
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in line)
    return len(line) + wide


Shown = tuple[int, str, str]


@pytest.fixture(scope="module")
def shown() -> Shown:
    """A whole run: exit code, output and errors."""
    return run()


@pytest.fixture(scope="module")
def shown_without_coordination() -> Shown:
    """A whole run in which each worker is for itself."""
    return run("--mode", "local")


def run(*options: str) -> Shown:
    with DemoProcess(*options) as demo:
        ended = demo.finish()
        demo.assert_nothing_is_left()
    return ended


def test_it_shows_one_call_for_each_answer(shown: Shown) -> None:
    code, output, errors = shown
    assert (code, errors) == (0, "")
    rows = table(output)
    same, other = f"{TIMES} identical", f"{len(DIFFERENT)} different"

    assert number(rows, f"at once/{same}", "calls") == 1
    assert number(rows, f"at once/{same}", "owner") == 1
    assert number(rows, f"at once/{same}", "follower", "replay", "L1") == TIMES - 1
    assert number(rows, f"at once/{other}", "calls") == len(DIFFERENT)
    assert number(rows, f"at once/{other}", "owner") == len(DIFFERENT)
    for again, asked in ((same, TIMES), (other, len(DIFFERENT))):
        assert number(rows, f"the same again/{again}", "calls", "owner", "follower") == 0
        assert number(rows, f"the same again/{again}", "replay", "L1") == asked


def test_the_table_adds_up(shown: Shown, shown_without_coordination: Shown) -> None:
    for _, output, _ in (shown, shown_without_coordination):
        rows = table(output)
        workers = [row for row in rows if row.startswith("together/in worker")]
        rounds = [row for row in rows if not row.startswith("together")]

        assert number(rows, "together/all", "asked") == 2 * ROUND
        for row, cells in rows.items():
            roles = [name for name in cells if name not in ("asked", "calls", "p50", "p99")]
            assert number(rows, row, *roles) == number(rows, row, "asked"), row
        for column in ("asked", "owner", "follower", "replay", "L1"):
            total = number(rows, "together/all", column)
            assert sum(number(rows, row, column) for row in rounds) == total
            assert sum(number(rows, row, column) for row in workers) == total
        calls = number(rows, "together/all", "calls")
        assert sum(number(rows, row, "calls") for row in rounds) == calls


def test_what_was_saved_is_what_was_not_called(
    shown: Shown, shown_without_coordination: Shown
) -> None:
    for _, output, _ in (shown, shown_without_coordination):
        saved = re.search(
            r"Asked (\d+) times, the model was called (\d+) times. "
            r"Saved: (\d+) calls \((\d+) %\),\n"
            r"that is ([\d.]+) s of model time",
            output,
        )
        assert saved is not None
        asked, calls, not_called, percent = (int(saved[group]) for group in (1, 2, 3, 4))

        assert (asked, calls) == (2 * ROUND, number(table(output), "together/all", "calls"))
        assert not_called == asked - calls
        assert percent == round(100 * not_called / asked)
        assert float(saved[5]) == pytest.approx(not_called * MODEL_MS / 1000)


def test_it_is_plain_text_of_80_columns(shown: Shown) -> None:
    _, output, _ = shown

    assert [line for line in output.splitlines() if columns_wide(line) > 80] == []
    assert "\x1b" not in output
    assert SAMPLES[0].question[:20] in output


def test_without_coordination_it_says_what_is_not_as_promised(
    shown_without_coordination: Shown,
) -> None:
    code, output, errors = shown_without_coordination

    assert code == 1
    assert number(table(output), "together/all", "calls") >= len(SAMPLES)
    assert errors.startswith("flightsvc demo: at once: ")
    assert "The service's last words:\n" in errors
    assert "Booting worker" in errors


def test_what_stops_it_is_one_line_and_the_service_s_last_words() -> None:
    with DemoProcess(files=64) as demo:  # fewer than its connections need
        code, _, errors = demo.finish()
        demo.assert_nothing_is_left()

    lines = errors.splitlines()
    assert code == 1
    assert lines[0].startswith("flightsvc demo: at once: no connection: ")
    assert lines[1] == "The service's last words:"
    assert len(lines) > 2


@pytest.mark.parametrize("at", ["starting", "load"])
def test_ctrl_c_leaves_nothing(at: str) -> None:
    with DemoProcess() as demo:
        demo.read_until(at)
        demo.interrupt()
        code, _, errors = demo.finish()

        assert code == 130
        assert "Traceback" not in errors
        demo.assert_nothing_is_left()


def test_impatient_ctrl_c_leaves_nothing_either() -> None:
    with DemoProcess() as demo:
        demo.read_until("load")
        for _ in range(20):
            demo.interrupt()
        code, _, errors = demo.finish()

        assert code == 130
        assert "Traceback" not in errors
        demo.assert_nothing_is_left()


def test_sigterm_leaves_nothing() -> None:
    with DemoProcess() as demo:
        demo.read_until("load")
        demo.process.terminate()
        code, _, errors = demo.finish()

        assert code == 143
        assert "Traceback" not in errors
        demo.assert_nothing_is_left()


def test_sigkill_leaves_no_process() -> None:
    with DemoProcess() as demo:
        demo.read_until("load")
        demo.process.kill()
        demo.wait_for_the_last_process()


def test_nobody_reading_is_no_fault() -> None:
    with DemoProcess() as demo:
        demo.read_until("starting")
        assert demo.process.stdout is not None
        demo.process.stdout.close()
        assert demo.process.wait(60) == 1
        assert demo.process.stderr is not None
        assert demo.process.stderr.read() == ""
        demo.assert_nothing_is_left()
