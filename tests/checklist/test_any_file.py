"""Whatever a user's file holds: it is served, or refused with a place; nothing else happens."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flightsvc.checklist import Checklist
from flightsvc.checklist.document import parse, shipped
from flightsvc.checklist.loading import build
from flightsvc.checklist.schema import (
    AlertEntry,
    CodeEntry,
    FallbackEntry,
    MatchEntry,
    RetryEntry,
)
from flightsvc.errors import SettingsError
from flightsvc.settings import Settings
from tests.checklist.lists import OWN

BASE, SETTINGS = shipped(), Settings()
WORDS = st.sampled_from(["none", "L1", "backoff", "nothing", "OVERLOAD", "500-599", "9-1", "(", ""])
VALUES = st.one_of(
    st.integers(-1, 2_000),
    st.booleans(),
    WORDS,
    st.lists(st.one_of(st.integers(0, 900), WORDS), max_size=3),
    st.just({"kind": "manual_review"}),
    st.just({"kind": "none", "x": [{}]}),
)


def entry(model: Any) -> st.SearchStrategy[dict[str, Any]]:
    fields = st.sampled_from([*model.model_fields, "unknown"])
    return st.dictionaries(fields, VALUES, max_size=4)


def section(name: str, model: Any) -> st.SearchStrategy[Any]:
    names = st.sampled_from([*list(BASE.tree[name])[:4], "new", "NEW", "AI_PAY_NEW", "none"])
    return st.one_of(VALUES, st.dictionaries(names, st.one_of(entry(model), VALUES), max_size=3))


FILES = st.fixed_dictionaries(
    {},
    optional={
        "trips_after": VALUES,
        "trips_alert": VALUES,
        "retry": section("retry", RetryEntry),
        "fallback": section("fallback", FallbackEntry),
        "alert": section("alert", AlertEntry),
        "codes": section("codes", CodeEntry),
        "match": st.one_of(VALUES, st.lists(st.one_of(entry(MatchEntry), VALUES), max_size=3)),
        "nonsense": VALUES,
    },
)


def written(value: Any) -> str:
    """As TOML; a list of tables as an array within one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {written(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(FILES)
def test_any_file_is_served_or_refused_with_a_place(tree: dict[str, Any]) -> None:
    text = "".join(f"{key} = {written(value)}\n" for key, value in tree.items())
    try:
        found = build(BASE, parse(text, OWN), SETTINGS)
    except SettingsError as error:
        said = str(error).split("\n  - ")
        places = said[1:] or said
        assert all(re.match(r"(own|flightsvc/checklist/checklist)\.toml:\d+: ", s) for s in places)
    else:
        assert isinstance(found, Checklist)
        assert {code.name for code in found} >= set(BASE.tree["codes"])
