"""The settings table in README.md is the one that the program prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from flightsvc.settings import STAGE_DEFAULTS, Settings, StageSettings
from flightsvc.settings.table import descriptions, table

README = Path(__file__).parents[2] / "README.md"
MARKER = "<!-- settings -->"


def test_every_setting_has_a_row_with_a_description() -> None:
    text = table()
    for model in (Settings, StageSettings):
        assert set(descriptions(model)) == set(model.model_fields)
    for name in Settings.model_fields.keys() - {"stages"}:
        assert f"\n| `FLIGHTSVC_{name.upper()}` | " in text
    for name in StageSettings.model_fields:
        assert f"\n| `{name.upper()}` | " in text
    for stage in STAGE_DEFAULTS:
        assert f" | {stage} | " in text


def test_every_row_of_a_table_has_as_many_cells() -> None:
    for part in table().split("\n\n"):
        assert len({line.replace("\\|", "").count("|") for line in part.splitlines()}) == 1


def test_the_program_prints_it() -> None:
    command = [sys.executable, "-m", "flightsvc.settings.table"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert printed.stdout == table()
    assert printed.stderr == ""


def test_the_readme_holds_it() -> None:
    _, inside, _ = README.read_text(encoding="utf-8").split(MARKER)
    assert inside.strip() == table().strip(), "run: python -m flightsvc.settings.table"
