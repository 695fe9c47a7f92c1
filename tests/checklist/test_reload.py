"""The master reads the list, and hands the workers the last good copy."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.processes import alive, wait_until
from tests.service.gunicorn_master import Master

APP = "tests.checklist.listing_app:app"


def write(path: Path, message: str) -> None:
    path.write_text(f'[codes.OVERLOAD]\nmessage_en = "{message}"\n', encoding="utf-8")


def environment(file: Path) -> dict[str, str]:
    return {"FLIGHTSVC_CHECKLIST_FILE": str(file), "FLIGHTSVC_MODE": "local"}


def test_hup_brings_a_new_list(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    write(file, "one")
    with Master(environment(file), app=APP) as master:
        assert master.told()["message"] == "one"
        write(file, "two")
        master.reload()
        assert master.told()["message"] == "two"
        assert "Settings and checklist read again" in master.log()
        assert master.end() == 0


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("[codes.OVERLOAD]\nstatus = 1\n", ":2: codes.OVERLOAD.status is 1"),
        ("[codes", ":1: the file ends too early"),
        (None, "is no file"),
    ],
)
def test_hup_with_a_mistake_changes_nothing_and_says_so(
    tmp_path: Path, mistake: str | None, said: str
) -> None:
    file = tmp_path / "own.toml"
    write(file, "good")
    with Master(environment(file), app=APP) as master:
        if mistake is None:
            file.unlink()
        else:
            file.write_text(mistake, encoding="utf-8")
        master.reload()
        assert "The last good settings stay, and their checklist" in master.log()
        assert str(file) in master.log()
        assert said in master.log()
        assert "Worker failed to boot" not in master.log()
        assert master.told()["message"] == "good"
        # and a worker that starts later gets it too
        died = master.told()["pid"]
        os.kill(died, signal.SIGKILL)
        wait_until(lambda: not alive(died) and len(master.children()) == 2)
        assert {master.told()["message"] for _ in range(6)} == {"good"}
        # until it is mended
        write(file, "mended")
        master.reload()
        assert master.told()["message"] == "mended"


def test_settings_and_list_change_together_or_not_at_all(tmp_path: Path) -> None:
    """New settings with a list that does not fit them stay out as well."""
    settings, file = tmp_path / "settings.toml", tmp_path / "own.toml"
    settings.write_text(f'namespace = "one"\nmode = "local"\nchecklist_file = "{file}"\n')
    write(file, "one")
    with Master({"FLIGHTSVC_CONFIG": str(settings)}, app=APP) as master:
        settings.write_text(settings.read_text().replace('"one"', '"two"'))
        file.write_text("nonsense = 1\n")
        master.reload()
        told = master.told()
        assert (told["namespace"], told["message"]) == ("one", "one")
        write(file, "two")
        master.reload()
        told = master.told()
        assert (told["namespace"], told["message"]) == ("two", "two")


def test_a_wrong_list_stops_the_start_with_one_message(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[codes.OVERLOAD]\nretri = 'x'\n", encoding="utf-8")
    master = Master(environment(file), app=APP)
    try:
        assert master.launch().wait() == 1
        said = master.log()
        assert said.startswith(
            f"flightsvc cannot start: {file}:2: codes.OVERLOAD.retri is no field"
        )
        assert "did you mean retry?" in said
        assert "Traceback" not in said
    finally:
        master.close()
