"""Which chats are the same question: H21, H22, H23, and what RFC 8785 says of JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightsvc.flight.key import FlightKey
from flightsvc.gateway.chat import Chat, InvalidChat, Sharing
from flightsvc.gateway.key import canonical, chat_key
from flightsvc.settings import Settings

IGNORED = Settings(mode="local").gateway_ignored_fields
ALICE = "alice"
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def picture(detail: str) -> list[dict[str, Any]]:
    image = {"url": "data:image/png;base64,AA==", "detail": detail}
    return [{"role": "user", "content": [{"type": "image_url", "image_url": image}]}]


BASE: dict[str, Any] = {"model": "m", "messages": picture("low")}


def key(body: dict[str, Any], sharing: Sharing | None = None, tenant: str = ALICE) -> FlightKey:
    chat = Chat.read(json.loads(json.dumps(body)))
    return chat_key(chat, sharing or Sharing(), tenant=tenant, provider="openai", ignored=IGNORED)


def key_of(text: str) -> FlightKey:
    """The key of a body as it is written."""
    chat = Chat.read(json.loads(text))
    return chat_key(chat, Sharing(), tenant=ALICE, provider="openai", ignored=IGNORED)


CHANGES: list[dict[str, Any]] = [
    {"model": "m2"},
    {"temperature": 0},
    {"temperature": 1},
    {"top_p": 1},
    {"n": 1},
    {"n": 2},
    {"max_tokens": 16},
    {"max_completion_tokens": 16},
    {"stop": "x"},
    {"stop": ["x"]},
    {"seed": 1},
    {"seed": 2**63 - 1},
    {"seed": 2**63 - 2},
    {"seed": str(2**63 - 1)},
    {"tools": [TOOL]},
    {"tools": [TOOL], "tool_choice": "auto"},
    {"tools": [TOOL], "tool_choice": "required"},
    {"tools": [TOOL], "parallel_tool_calls": False},
    {"tools": [TOOL], "parallel_tool_calls": True},
    {"response_format": {"type": "json_object"}},
    {"logit_bias": {"50256": -100}},
    {"reasoning_effort": "low"},
    {"messages": picture("high")},
    {"never_heard_of": None},
    {"never_heard_of": 0},
    {"never_heard_of": False},
    {"never_heard_of": ""},
    {"never_heard_of": "0"},
    {"never_heard_of": [0]},
]


def test_h22_each_change_makes_another_question() -> None:
    keys = [key(BASE), *(key({**BASE, **change}) for change in CHANGES)]
    assert len({each.flight_id for each in keys}) == len(CHANGES) + 1


@pytest.mark.parametrize(
    "change",
    [
        {"stream": True},
        {"stream": True, "stream_options": {"include_usage": True}},
        {"metadata": {"a": "b"}},
        {"user": "u"},
        {"store": True},
        {"service_tier": "flex"},
    ],
)
def test_what_cannot_change_the_answer_makes_none(change: dict[str, Any]) -> None:
    assert key({**BASE, **change}) == key(BASE)


def test_the_list_of_what_does_not_count_is_a_setting() -> None:
    chats = [Chat.read({**BASE, **change}) for change in ({"user": "u"}, {})]
    told = {
        chat_key(chat, Sharing(), tenant="", provider="p", ignored=()).flight_id for chat in chats
    }
    assert len(told) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "1.0"),
        ("1e3", "1000"),
        ("0", "-0.0"),
        ("1e16", "10000000000000000"),
        ("9007199254740992", "9007199254740992.0"),
        ('"é"', '"\\u00e9"'),
        ('{"a":1,"b":2}', '{ "b" : 2 , "a" : 1 }'),
    ],
)
def test_equal_values_are_the_same_question(one: str, other: str) -> None:
    texts = [f'{{"model":"m","messages":[1],"x":{each}}}' for each in (one, other)]
    assert key_of(texts[0]) == key_of(texts[1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "true"),
        ("0", "false"),
        ("null", "0"),
        ('"é"', '"e\\u0301"'),
        ("9007199254740993", "9007199254740992"),
        ("9007199254740993", '"9007199254740993"'),
        ('[9007199254740993,"9007199254740995"]', '["9007199254740993",9007199254740995]'),
        ("1", "[1]"),
    ],
)
def test_unequal_values_are_not(one: str, other: str) -> None:
    texts = [f'{{"model":"m","messages":[1],"x":{each}}}' for each in (one, other)]
    assert key_of(texts[0]) != key_of(texts[1])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_the_canonical_form_outlives_any_writing(value: Any) -> None:
    again = json.loads(json.dumps(value, indent=1, sort_keys=True))
    assert canonical(again) == canonical(value)


@pytest.mark.parametrize("field", ["x", "user", "messages"])
@pytest.mark.parametrize("text", ['"\\ud83d"', '["a\\udc00"]', '{"\\ud800": 1, "a": 2}', "1e999"])
def test_half_characters_and_boundless_numbers_are_refused(field: str, text: str) -> None:
    value = f"[{text}]"
    body = {"model": '"m"', "messages": "[1]", field: value}
    with pytest.raises(InvalidChat) as caught:
        key_of("{" + ",".join(f'"{name}":{body[name]}' for name in body) + "}")
    assert caught.value.status == 400


def test_h21_tenants_share_nothing_and_no_body_imitates_one() -> None:
    told = {
        key(BASE, tenant="alice").flight_id,
        key(BASE, tenant="bob").flight_id,
        key({**BASE, "tenant": "bob"}, tenant="alice").flight_id,
        key({**BASE, "user": "bob"}, tenant="alice").flight_id,
        key(BASE, Sharing(name="k"), tenant="alice").flight_id,
        key(BASE, Sharing(name="k"), tenant="bob").flight_id,
    }
    assert len(told) == 5  # `user` is none


def test_h23_who_bypasses_is_alone() -> None:
    alone = Sharing(bypass=True)
    assert len({key(BASE, alone).flight_id, key(BASE, alone).flight_id, key(BASE).flight_id}) == 3


def test_a_name_is_the_question_and_the_body_its_digest() -> None:
    named = Sharing(name="order-7")
    one, other = key(BASE, named), key({**BASE, "temperature": 0}, named)
    assert one.flight_id == other.flight_id
    assert one.digest != other.digest
    assert one.digest == key({**BASE, "user": "u"}, named).digest


@pytest.mark.parametrize(
    ("document", "param"),
    [
        ([], None),
        ({"messages": [1]}, "model"),
        ({"model": "", "messages": [1]}, "model"),
        ({"model": "m"}, "messages"),
        ({"model": "m", "messages": []}, "messages"),
        ({"model": "m", "messages": [1], "stream": 1}, "stream"),
        ({"model": "m", "messages": [1], "stream_options": 1}, "stream_options"),
        (
            {"model": "m", "messages": [1], "stream_options": {"include_usage": "y"}},
            "stream_options.include_usage",
        ),
    ],
)
def test_what_is_no_chat_is_refused_by_name(document: Any, param: str | None) -> None:
    with pytest.raises(InvalidChat) as caught:
        Chat.read(document)
    assert caught.value.param == param
