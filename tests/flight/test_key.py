"""Keys: what is one question, what is another, and what is refused."""

from __future__ import annotations

import copy
import enum
import hashlib
import pickle
import re
import unicodedata
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flightsvc.errors import InvalidKey
from flightsvc.flight.key import FlightKey, Part, hash_text, normalise_answer, shard_of

steady = settings(derandomize=True, deadline=None, max_examples=300)

# Few letters, those of the encoding among them, so that near misses are common.
tricky_text = st.text(st.sampled_from("ab|:,t0123V\n\r \0é\u0301语"), max_size=6)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
parts = st.lists(tricky_text | st.binary(max_size=4) | st.integers(-30, 30), min_size=1, max_size=4)


def normal(part: Part) -> str | bytes:
    """The plain meaning of a part, written down a second time."""
    if isinstance(part, bytes):
        return part
    text = re.sub("\r\n|\r", "\n", str(part))
    return unicodedata.normalize("NFC", text)


def read_fields(encoded: bytes) -> list[tuple[str, bytes]]:
    """An independent reader of the canonical form: every byte must be accounted for."""
    version, _, rest = encoded.partition(b"\n")
    assert version == b"flight-key/1"
    fields = []
    while rest:
        match = re.match(rb"([STVtb])(0|[1-9][0-9]*):", rest)
        assert match, rest
        end = match.end() + int(match[2])
        assert rest[end : end + 1] == b","
        fields.append((match[1].decode(), rest[match.end() : end]))
        rest = rest[end + 1 :]
    return fields


def test_the_canonical_form_is_pinned() -> None:
    # These bytes are in Redis of running services: a change needs a new version.
    key = FlightKey("evaluation", "s-1", 3, b"\x00|", "e\u0301\r\nx", tenant="acme", variant="v1")
    assert key.canonical == (
        b"flight-key/1\nS10:evaluation,T4:acme,V2:v1,t3:s-1,t1:3,b2:\x00|,t4:\xc3\xa9\nx,"
    )
    assert key.flight_id == "b9c770bb20be47735ec07f1a5e9eec3f"


def test_the_flight_id_is_the_shortened_sha256_of_the_canonical_bytes() -> None:
    key = FlightKey("chat", "x")
    assert key.flight_id == hashlib.sha256(key.canonical).hexdigest()[:32]


@steady
@given(parts, tricky_text, tricky_text)
def test_the_canonical_form_can_be_read_back(
    given_parts: list[Part], tenant: str, variant: str
) -> None:
    key = FlightKey("s", *given_parts, tenant=tenant, variant=variant)
    meant = [normal(part) for part in given_parts]
    assert key.parts == tuple(meant)
    assert read_fields(key.canonical) == [
        ("S", b"s"),
        ("T", tenant.encode()),
        ("V", variant.encode()),
        *(("b", p) if isinstance(p, bytes) else ("t", p.encode()) for p in meant),
    ]


@steady
@given(parts, parts, tricky_text, tricky_text)
@example(["a|b"], ["a", "|b"], "", "")
@example(["3"], [3], "", "")
@example(["a"], [b"a"], "", "")
@example(["a", ""], ["a"], "", "")
@example(["e\u0301"], ["\u00e9"], "", "")
def test_keys_are_equal_exactly_if_they_mean_the_same(
    one: list[Part], two: list[Part], tenant_one: str, tenant_two: str
) -> None:
    left, right = FlightKey("s", *one, tenant=tenant_one), FlightKey("s", *two, tenant=tenant_two)
    same = tenant_one == tenant_two and [*map(normal, one)] == [*map(normal, two)]
    assert (left == right) is same
    assert (left.flight_id == right.flight_id) is same
    if same:
        assert hash(left) == hash(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (FlightKey("s", "a|b"), FlightKey("s", "a", "|b")),
        (FlightKey("s", "a", "b"), FlightKey("s", "b", "a")),
        (FlightKey("s", "a"), FlightKey("s", b"a")),
        (FlightKey("s", "1"), FlightKey("s", "01")),
        (FlightKey("s", "a"), FlightKey("s", "a\0")),
        (FlightKey("s", "a"), FlightKey("s", " a")),
        (FlightKey("s", "a"), FlightKey("S", "a")),
        (FlightKey("s", "a"), FlightKey("s", "a", tenant="t")),
        (FlightKey("s", "a", tenant="t"), FlightKey("s", "a", variant="t")),
        (FlightKey("s", "a", tenant="t"), FlightKey("s", "T1:t,", "a")),
        (FlightKey("s", "a", tenant="\u00e9"), FlightKey("s", "a", tenant="e\u0301")),
        (FlightKey("s", "a", variant="x\n"), FlightKey("s", "a", variant="x\r\n")),
    ],
)
def test_what_differs_is_another_flight(left: FlightKey, right: FlightKey) -> None:
    assert left != right
    assert left.flight_id != right.flight_id


def test_line_ends_and_composition_do_not_make_another_question() -> None:
    assert FlightKey("s", "é\r\nb\rc") == FlightKey("s", "e\u0301\nb\nc")


def test_the_digest_is_no_part_of_the_identity() -> None:
    one, two = FlightKey("s", "a", digest="1"), FlightKey("s", "a", digest="2")
    assert one == two
    assert one.flight_id == two.flight_id
    assert (one.digest, two.digest) == ("1", "2")


def test_enums_of_text_and_int_count_as_their_content() -> None:
    class Name(enum.StrEnum):
        ONE = "one"

    class Number(enum.IntEnum):
        THREE = 3

    key = FlightKey("s", Name.ONE, Number.THREE)
    assert key == FlightKey("s", "one", 3)
    assert [type(part) for part in key.parts] == [str, str]


class Unprintable:
    def __repr__(self) -> str:
        return "secret answer"


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (True, "bool"),
        (1.5, "float"),
        (None, "NoneType"),
        (["secret answer"], "list"),
        (Unprintable(), "Unprintable"),
        (bytearray(b"secret answer"), r"bytes\(value\)"),
        ("secret answer \ud800", "surrogate"),
        ("\ud83d\ude00 as two halves", "surrogate"),
        pytest.param(10**5000, "digits", id="huge int"),
    ],
)
def test_a_part_that_is_refused_is_named_and_not_shown(part: Any, says: str) -> None:
    with pytest.raises(InvalidKey, match=rf"parts\[1\].*{says}") as caught:
        FlightKey("s", "fine", part)
    assert re.search("give|format|write", str(caught.value))
    assert "secret" not in str(caught.value)
    with pytest.raises(InvalidKey, match=r"parts\[0\]"):
        hash_text(part)


@pytest.mark.parametrize(
    "stage", ["", "1a", "-a", "a b", "a:b", "{a}", "é", "a\n", "a" * 65, None, b"a", 7]
)
def test_a_stage_that_is_no_name_is_refused(stage: Any) -> None:
    with pytest.raises(InvalidKey, match="stage"):
        FlightKey(stage, "a")


@pytest.mark.parametrize("stage", ["a", "follow_up", "Shop.scoring-2", "a" * 64])
def test_a_stage_that_is_a_name_is_taken(stage: str) -> None:
    assert FlightKey(stage, "a").stage == stage


def test_a_key_without_parts_is_refused() -> None:
    with pytest.raises(InvalidKey, match="at least one part"):
        FlightKey("s")


@pytest.mark.parametrize("name", ["tenant", "variant", "digest"])
@pytest.mark.parametrize("value", [None, 7, b"x", "\udfff"])
def test_tenant_variant_and_digest_must_be_text(name: str, value: Any) -> None:
    with pytest.raises(InvalidKey, match=name):
        FlightKey("s", "a", **{name: value})


def test_a_key_cannot_be_changed_and_shows_no_content() -> None:
    key = FlightKey("s", "secret answer", tenant="acme")
    with pytest.raises(FrozenInstanceError):
        key.stage = "other"  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        key.extra = 1  # type: ignore[attr-defined]
    assert repr(key) == f"FlightKey(stage='s', flight_id='{key.flight_id}')"
    assert key != "s"


def test_a_key_can_be_copied_and_pickled() -> None:
    key = FlightKey("s", "a", 1, b"c", tenant="t", variant="v", digest="d")
    for twin in (copy.deepcopy(key), pickle.loads(pickle.dumps(key))):
        assert twin == key
        assert (twin.parts, twin.flight_id, twin.digest) == (key.parts, key.flight_id, "d")


@steady
@given(any_text)
@example("\u3000 答案 \u00a0\r\n")
@example("\u2028a\u2000")
def test_a_normalised_answer_is_trimmed_once_and_for_all(text: str) -> None:
    once = normalise_answer(text)
    assert normalise_answer(once) == once == once.strip()
    assert "\r" not in once
    assert unicodedata.is_normalized("NFC", once)
    assert normalise_answer(f" \u3000{text}\r\n\t") == once


def test_inner_white_space_of_an_answer_stays() -> None:
    assert normalise_answer("\n a  b\r\n\r\nc\u3000") == "a  b\n\nc"


def test_an_answer_must_be_text() -> None:
    with pytest.raises(InvalidKey, match="bytes"):
        normalise_answer(b"a")  # type: ignore[arg-type]


def test_h22_one_change_of_a_named_value_makes_another_variant() -> None:
    base = {"model": "m", "temperature": "1", "top_p": "1", "n": "1"}

    def variant(values: dict[str, str]) -> str:
        return hash_text(*(text for pair in sorted(values.items()) for text in pair))

    seen = {variant(base)}
    for name in base:
        seen.add(variant({**base, name: base[name] + "0"}))
        seen.add(variant({n: v for n, v in base.items() if n != name}))  # omitted, not default
    assert len(seen) == 1 + 2 * len(base)


def test_hash_text_is_pinned_and_unambiguous() -> None:
    assert hash_text("a", 1) == hashlib.sha256(b"flight-hash/1\nt1:a,t1:1,").hexdigest()
    assert hash_text("a|b") != hash_text("a", "|b")
    assert hash_text() != hash_text("")


@given(any_text, st.integers(1, 1024))
@steady
def test_a_shard_is_in_range_and_steady(text: str, shards: int) -> None:
    flight_id = FlightKey("s", text).flight_id
    assert 0 <= shard_of(flight_id, shards) < shards
    assert shard_of(flight_id, shards) == int(flight_id, 16) % shards


def test_shards_are_used_evenly() -> None:
    counts = [0] * 16
    for n in range(16_000):
        counts[shard_of(FlightKey("s", n).flight_id, 16)] += 1
    assert min(counts) > 800
    assert max(counts) < 1200
