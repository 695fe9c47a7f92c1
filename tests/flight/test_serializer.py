"""Envelopes: round trips, what is refused, and every kind of damage."""

from __future__ import annotations

import binascii
import enum
import itertools
import os
import random
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zlib_ng import zlib_ng

from flightsvc.errors import ResultRejected
from flightsvc.flight.serializer import (
    CorruptResult,
    Encoding,
    Envelope,
    Payload,
    ResultSerializer,
    UnknownVersion,
    UnreadableResult,
    seal,
)
from flightsvc.flight.strict_json import MAX_DEPTH

LIMIT = 64 * 1024
ENCODINGS: tuple[Encoding, ...] = ("base64", "raw")
steady = settings(derandomize=True, deadline=None, max_examples=200)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=30,
)  # fmt: skip

EVALUATION = {
    "score": 87,
    "logic_ok": True,
    "missing_points": ["没有提到缓存击穿", "no word on back-pressure"],
    "feedback": "回答完整,思路清楚。" * 60,
    "follow_up_question": None,
}


def both() -> list[ResultSerializer]:
    return [ResultSerializer(LIMIT, encoding) for encoding in ENCODINGS]


def round_trip(serializer: ResultSerializer, value: object) -> Any:
    return serializer.unpack(serializer.pack(serializer.freeze(value)).blob).thaw()


@steady
@given(json_values | st.binary(max_size=3000))
def test_values_come_back_as_they_went_in(value: object) -> None:
    for serializer in both():
        assert round_trip(serializer, value) == value


@pytest.mark.parametrize(
    "value",
    [b"", "", None, 0, -0.0, [], {}, "\0", "a" * 5000, b"\n" * 5000],
    ids=itertools.count(),
)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_edges_come_back(value: object, encoding: Encoding) -> None:
    back = round_trip(ResultSerializer(LIMIT, encoding), value)
    assert back == value
    assert type(back) is type(value)


def test_tuples_come_back_as_lists_and_subclasses_as_plain_types() -> None:
    class Level(enum.StrEnum):
        HIGH = "high"

    value = OrderedDict(a=(1, (2,)), b=Level.HIGH, c=enum.IntEnum("N", "ONE").ONE)  # type: ignore[attr-defined]
    assert round_trip(ResultSerializer(LIMIT), value) == {"a": [1, [2]], "b": "high", "c": 1}


@pytest.mark.parametrize("writer", ENCODINGS)
@pytest.mark.parametrize("reader", ENCODINGS)
def test_both_encodings_are_read_whatever_is_written(writer: Encoding, reader: Encoding) -> None:
    envelope = ResultSerializer(LIMIT, writer).pack(Payload("bytes", b"x" * 3000))
    assert ResultSerializer(LIMIT, reader).unpack(envelope.blob).data == b"x" * 3000


@pytest.mark.parametrize(
    ("data", "packing"),
    [
        pytest.param(b"x" * 1024, "none", id="short"),
        pytest.param(b"x" * 1025, "zlib", id="long"),
        pytest.param(random.Random(1).randbytes(4000), "none", id="does not shrink"),
    ],
)
def test_data_is_compressed_above_1_kb_if_that_helps(data: bytes, packing: str) -> None:
    for serializer, encoding in zip(both(), ENCODINGS, strict=True):
        envelope = serializer.pack(Payload("bytes", data))
        assert envelope.codec == f"{packing}+{encoding}"
        assert envelope.size == len(data)
        assert serializer.unpack(envelope.blob) == Payload("bytes", data)


def test_the_envelope_is_pinned() -> None:
    # These bytes are in Redis of running services: a change needs a new version.
    envelope = ResultSerializer(LIMIT).pack(Payload("json", b'{"a":1}'))
    assert envelope == Envelope(
        b"flightsvc-result 1 json none base64 7 12 d2b22eda 301332e3\neyJhIjoxfQ==",
        "none+base64",
        7,
        "d2b22eda",
    )


def test_a_base64_envelope_is_ascii() -> None:
    assert ResultSerializer(LIMIT).pack(Payload("bytes", bytes(range(256)) * 9)).blob.isascii()


def test_h32_each_caller_gets_a_copy_of_its_own() -> None:
    payload = ResultSerializer(LIMIT).freeze({"points": [{"a": 1}]})
    mine, yours = payload.thaw(), payload.thaw()
    mine["points"][0]["a"] = 2
    mine["points"].append("x")
    assert yours == payload.thaw() == {"points": [{"a": 1}]}


def test_a_frozen_value_does_not_follow_later_changes() -> None:
    value = {"points": [1]}
    payload = ResultSerializer(LIMIT).freeze(value)
    value["points"].append(2)
    assert payload.thaw() == {"points": [1]}


# What cannot be stored


def itself() -> list[object]:
    value: list[object] = []
    value += [value, value]
    return value


def nested(depth: int) -> object:
    value: object = "leaf"
    for _ in range(depth):
        value = [value]
    return value


class Opaque:
    def __repr__(self) -> str:
        return "secret"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"secret"}, "set"),
        ([Opaque()], "Opaque"),
        (bytearray(b"secret"), "bytearray"),
        ({"a": b"secret"}, "bytes"),
        ({"secret": {1: "x"}}, "key of type int"),
        ({None: "secret"}, "key of type NoneType"),
        ({("secret",): 1}, "key of type tuple"),
        ([float("nan")], "NaN"),
        ({"a": float("-inf")}, "Infinity"),
        ("secret \ud800", "surrogate"),
        ({"secret \udfff": 1}, "surrogate"),
        pytest.param(10**5000, "digits", id="huge int"),
        pytest.param(itself(), "contains itself", id="contains itself"),
        pytest.param(nested(MAX_DEPTH + 1), "nested deeper", id="one level too deep"),
        pytest.param(nested(100_000), "nested deeper", id="far too deep"),
    ],
)
def test_what_json_would_change_or_refuse_is_not_storable(value: object, says: str) -> None:
    with pytest.raises(ResultRejected, match=says) as caught:
        ResultSerializer(LIMIT).freeze(value)
    assert caught.value.code == "RESULT_NOT_SERIALIZABLE"
    assert "secret" not in str(caught.value)


def test_the_deepest_nesting_comes_back() -> None:
    assert round_trip(ResultSerializer(LIMIT), nested(MAX_DEPTH)) == nested(MAX_DEPTH)


@pytest.mark.parametrize("make", [lambda n: b"s" * n, lambda n: "s" * (n - 2)])
def test_the_limit_holds_to_the_byte(make: Callable[[int], object]) -> None:
    serializer = ResultSerializer(2000)
    assert len(serializer.freeze(make(2000)).data) == 2000
    with pytest.raises(ResultRejected) as caught:
        serializer.freeze(make(2001))
    assert caught.value.code == "RESULT_TOO_LARGE"
    for needed in (type(make(9)).__name__, "2001" if make(9) == b"s" * 9 else "over", "2000",
                   "FLIGHTSVC_MAX_RESULT_BYTES"):  # fmt: skip
        assert needed in str(caught.value)
    assert "sss" not in str(caught.value)


def test_the_limit_counts_bytes_not_characters() -> None:
    with pytest.raises(ResultRejected, match="takes 3002 bytes"):
        ResultSerializer(2000).freeze("语" * 1000)


def test_a_small_structure_that_writes_out_huge_is_refused_at_once() -> None:
    value: object = "leaf"
    for _ in range(MAX_DEPTH - 1):
        value = [value, value]  # 2 ** 199 leaves
    with pytest.raises(ResultRejected) as caught:
        ResultSerializer(4 << 20).freeze(value)
    assert caught.value.code == "RESULT_TOO_LARGE"


# H30: damage


SAMPLES = [
    pytest.param(ResultSerializer(LIMIT, encoding).pack(payload).blob, id=f"{name} {encoding}")
    for encoding in ENCODINGS
    for name, payload in {
        "small": Payload("json", b'{"score":1}'),
        "empty": Payload("bytes", b""),
        "lines": Payload("bytes", b"1\n2\n"),
        "compressed": ResultSerializer(LIMIT).freeze(EVALUATION),
    }.items()
]


@pytest.mark.parametrize("blob", SAMPLES)
def test_h30_every_single_bit_flip_is_noticed(blob: bytes) -> None:
    serializer = ResultSerializer(LIMIT)
    for position in range(len(blob)):
        for bit in range(8):
            changed = bytearray(blob)
            changed[position] ^= 1 << bit
            with pytest.raises(CorruptResult):
                serializer.unpack(bytes(changed))


@pytest.mark.parametrize("blob", SAMPLES)
def test_h30_every_truncation_and_every_addition_is_noticed(blob: bytes) -> None:
    serializer = ResultSerializer(LIMIT)
    for length in range(len(blob)):
        with pytest.raises(CorruptResult):
            serializer.unpack(blob[:length])
    for junk in (b"\0", b"\n", b" ", b"=", b"junk", blob):
        with pytest.raises(CorruptResult):
            serializer.unpack(blob + junk)
        with pytest.raises(CorruptResult):
            serializer.unpack(junk + blob)


@steady
@given(st.binary(max_size=300) | st.binary(max_size=100).map(lambda b: b"flightsvc-result 1 " + b))
def test_h30_noise_is_corrupt_and_nothing_else(blob: bytes) -> None:
    with pytest.raises(CorruptResult):
        ResultSerializer(LIMIT).unpack(blob)


def forge(body: bytes, size: int, *, form: str = "bytes zlib raw", data: bytes = b"") -> bytes:
    """An envelope whose seal and checksum fit, and whose content may not."""
    words = f"{form} {size} {len(body)}".encode()
    checksum = zlib_ng.crc32(data, zlib_ng.crc32(words))
    return seal(1, b"%b %08x" % (words, checksum), body)


GOOD = b"d" * 2000
PACKED = zlib_ng.compress(GOOD, 4)


def test_a_forged_envelope_that_fits_is_read() -> None:
    assert ResultSerializer(LIMIT).unpack(forge(PACKED, 2000, data=GOOD)).data == GOOD


@pytest.mark.parametrize(
    "blob",
    [
        forge(PACKED[:-3], 2000, data=GOOD),
        forge(PACKED[:-4] + b"\0\0\0\0", 2000, data=GOOD),
        forge(PACKED + b"junk", 2000, data=GOOD),
        forge(PACKED, 1999, data=GOOD),
        forge(PACKED, 2001, data=GOOD),
        forge(PACKED, 2000, data=GOOD[:-1]),
        forge(b"", 0),
        forge(b"not zlib", 2000),
        forge(GOOD, 1999, form="bytes none raw", data=GOOD),
        forge(b"YQ=", 1, form="bytes none base64", data=b"a"),
        forge(b"YQ==\n", 1, form="bytes none base64", data=b"a"),
        forge(binascii.b2a_base64(PACKED), 2000, form="bytes zlib base64", data=GOOD),
        forge(zlib_ng.compress(b"d" * 10, 0), 10, data=b"d" * 10),  # packing made it longer
        forge(b"YR==", 1, form="bytes none base64", data=b"b"),
        forge(b"a", 1, form="text none raw", data=b"a"),
        forge(b"a", 1, form="bytes lz4 raw", data=b"a"),
        forge(b"a", 1, form="bytes  none raw", data=b"a"),
        seal(1, b"bytes none raw 1 1", b"a"),
        seal(1, b"bytes none raw +1 1 00000000", b"a"),
        seal(0, b"bytes none raw 1 1 00000000", b"a"),
    ],
    ids=itertools.count(),
)
def test_an_envelope_with_a_fitting_seal_is_still_checked(blob: bytes) -> None:
    with pytest.raises(CorruptResult):
        ResultSerializer(LIMIT).unpack(blob)


def test_data_that_is_not_json_is_corrupt_when_it_is_thawed() -> None:
    for data in (b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(CorruptResult):
            Payload("json", data).thaw()


def test_a_newer_version_is_whole_but_unknown() -> None:
    newer = seal(2, b"some other words", b"and another body")
    with pytest.raises(UnknownVersion, match="version 2") as caught:
        ResultSerializer(LIMIT).unpack(newer)
    assert caught.value.version == 2
    assert not isinstance(caught.value, CorruptResult)
    assert issubclass(UnknownVersion, UnreadableResult)
    assert issubclass(CorruptResult, UnreadableResult)


def test_a_newer_version_that_is_damaged_is_corrupt() -> None:
    newer = seal(12, b"some other words", b"and another body")
    for position in range(len(newer)):
        changed = bytearray(newer)
        changed[position] ^= 2
        with pytest.raises(CorruptResult):
            ResultSerializer(LIMIT).unpack(bytes(changed))


def test_an_envelope_over_the_readers_limit_is_a_miss() -> None:
    blob = ResultSerializer(LIMIT).pack(Payload("bytes", b"x" * 3000)).blob
    with pytest.raises(CorruptResult, match="FLIGHTSVC_MAX_RESULT_BYTES"):
        ResultSerializer(2999).unpack(blob)


# H31: a blob that inflates to far more than it may


INFLATED = 200 * 1024 * 1024

UNPACK_AND_MEASURE = """
import pathlib, sys
from flightsvc.flight.serializer import CorruptResult, ResultSerializer

def peak_kb():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])

blob = pathlib.Path(sys.argv[1]).read_bytes()
serializer = ResultSerializer(4 * 1024 * 1024)
before = peak_kb()
try:
    serializer.unpack(blob)
except CorruptResult as error:
    print((peak_kb() - before) * 1024, error)
"""


def bomb() -> bytes:
    stream = zlib_ng.compressobj(9)
    chunk = bytes(1024 * 1024)
    pieces = [stream.compress(chunk) for _ in range(INFLATED // len(chunk))]
    return b"".join([*pieces, stream.flush()])


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory from /proc")
@pytest.mark.parametrize("declared", [INFLATED, 4 * 1024 * 1024, 1_000_000])
def test_h31_a_bomb_is_a_miss_and_costs_little_memory(declared: int, tmp_path: Path) -> None:
    packed = bomb()
    assert len(packed) < 1_000_000
    path = tmp_path / "bomb"
    path.write_bytes(forge(packed, declared))
    ran = subprocess.run(
        [sys.executable, "-c", UNPACK_AND_MEASURE, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    grown, _, reason = ran.stdout.partition(" ")
    assert reason.strip()
    assert int(grown) < 30 * 1024 * 1024
