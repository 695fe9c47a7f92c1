"""The page about the model server says what there is."""

from __future__ import annotations

import json
import re

from flightsvc.model_server.rules import Behave, Match, read_script
from flightsvc.model_server.stats import Stats
from tests.processes import ROOT

PAGE = (ROOT / "docs/model-server.md").read_text()


def rows(heading: str) -> dict[str, list[str]]:
    """The first cell's names of each row below a heading → its other cells."""
    section = PAGE.partition(f"{heading}\n")[2].partition("\n#")[0]
    lines = [line.strip("|").split(" | ") for line in re.findall(r"^\| `.*\|$", section, re.M)]
    return {name: line[1:] for line in lines for name in re.findall(r"`(\w+)`", line[0])}


def test_every_field_of_a_rule_stands_on_the_page_with_its_default() -> None:
    assert rows("### match").keys() == Match.model_fields.keys()
    behave = rows("### behave")
    assert behave.keys() == Behave.model_fields.keys()
    for name, field in Behave.model_fields.items():
        default = field.get_default(call_default_factory=True)
        said = default if isinstance(default, str) else json.dumps(default)
        shown = behave[name][0].strip()
        assert shown == ("" if default is None else f"`{said}`") or shown == "by kind", name


def test_every_counter_stands_on_the_page() -> None:
    assert rows("## The counters").keys() == Stats().as_json(0).keys()


def test_the_example_is_a_script() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert len(read_script(example).rules) == 3
