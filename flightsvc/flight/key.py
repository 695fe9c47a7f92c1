"""What makes two requests the same question: :class:`FlightKey` and its canonical bytes.

The canonical form, version 1, is a line naming the version and then fields, each written as
``<kind><length in bytes>:<bytes>,`` (a netstring with a kind letter in front)::

    flight-key/1
    S10:evaluation,T4:acme,V0:,t2:42,b3:...,

``S`` stage, ``T`` tenant, ``V`` variant, then the parts in order: ``t`` text, ``b`` bytes. A length
stands before every field, so no content can imitate a field's end, and ``"a|b"`` is never
``"a", "|b"``. Stage, tenant and variant have letters of their own: no part can imitate them.

Texts of parts are compared as people read them: Unicode NFC, and CRLF or CR as LF. Tenant and
variant are compared exactly, as two that differ in any byte must never share an answer.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from hashlib import sha256

from flightsvc.errors import InvalidKey

#: What a part of a key may be. An int is the same part as its decimal text.
Part = str | int | bytes

FLIGHT_ID_HEX = 32

_KEY_VERSION = b"flight-key/1\n"
_HASH_VERSION = b"flight-hash/1\n"
_STAGE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_set = object.__setattr__  # the class is frozen; its own constructor is not

_FIXES: dict[type, str] = {
    bool: "write what it means as text, e.g. 'strict' or 'lenient'",
    float: "format it as text with the digits that matter, e.g. f'{value:.2f}'",
    type(None): "give a text that says so, e.g. '' or 'none'",
    bytearray: "give bytes(value)",
    memoryview: "give bytes(value)",
}


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class FlightKey:
    """The identity of one question. Immutable, hashable; equal if :attr:`canonical` is equal.

    :param stage: kind of AI request: a letter, then at most 63 of letters, digits, ``_.-``.
    :param parts: what tells this question from others of the stage, at least one: text, int or
        bytes. Text is normalised (NFC, LF) but not trimmed: see :func:`normalise_answer`.
    :param tenant: who may share the answer; compared exactly.
    :param variant: everything else that reaches the model, usually from :func:`hash_text`;
        compared exactly.
    :param digest: for keys that a client chose itself: hash of its request, so that one key for two
        requests is noticed. No part of the identity.
    :raises InvalidKey: names what is wrong and the fix; never holds the content of a part.
    """

    stage: str
    #: As given, with texts normalised and ints as decimal text.
    parts: tuple[str | bytes, ...]
    tenant: str
    variant: str
    digest: str
    canonical: bytes
    #: SHA-256 of the canonical bytes, the first 32 hex digits.
    flight_id: str

    def __init__(
        self, stage: str, *parts: Part, tenant: str = "", variant: str = "", digest: str = ""
    ) -> None:
        if not _is_stage(stage):
            raise InvalidKey(
                "stage of a flight key: start with a letter, then up to 63 letters, digits, '_', "
                "'.' or '-', e.g. 'evaluation'"
            )
        if not parts:
            raise InvalidKey(
                "a flight key needs at least one part besides the stage: give what tells this "
                "question from others, e.g. the session and the answer"
            )
        plain, fields = _encode_parts(parts)
        owner, variation = _exact("tenant", tenant), _exact("variant", variant)
        canonical = b"%bS%d:%b,T%d:%b,V%d:%b,%b" % (
            _KEY_VERSION,
            len(stage),
            stage.encode("ascii"),
            len(owner),
            owner,
            len(variation),
            variation,
            fields,
        )
        _exact("digest", digest)
        _set(self, "stage", str.__str__(stage))
        _set(self, "parts", plain)
        _set(self, "tenant", str.__str__(tenant))
        _set(self, "variant", str.__str__(variant))
        _set(self, "digest", str.__str__(digest))
        _set(self, "canonical", canonical)
        _set(self, "flight_id", sha256(canonical).hexdigest()[:FLIGHT_ID_HEX])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FlightKey):
            return NotImplemented
        return self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __repr__(self) -> str:
        # Parts are people's answers: they do not belong in a log or a traceback.
        return f"FlightKey(stage={self.stage!r}, flight_id={self.flight_id!r})"


def normalise_answer(text: str) -> str:
    """An answer as it is compared: outer Unicode white space trimmed, NFC, line ends as LF.

    :raises InvalidKey: if ``text`` is not text.
    """
    if not isinstance(text, str):
        raise InvalidKey(f"an answer must be text, not {type(text).__name__}: decode it first")
    return _normalise(text.strip())


def hash_text(*parts: Part) -> str:
    """SHA-256 of the parts, 64 hex digits, by the same encoding as a key's parts.

    Made for :class:`FlightKey`'s variant. For optional fields give the name and the value of those
    that are set, so that an omitted field differs from its default.

    :raises InvalidKey: as for a key's parts; no part at all is allowed here.
    """
    return sha256(_HASH_VERSION + _encode_parts(parts)[1]).hexdigest()


def shard_of(flight_id: str, shards: int) -> int:
    """The shard of a flight: its id modulo ``shards`` (at least 1).

    :raises ValueError: if ``flight_id`` is not hexadecimal.
    """
    return int(flight_id, 16) % shards


def _is_stage(stage: object) -> bool:
    return isinstance(stage, str) and _STAGE.fullmatch(stage) is not None


def _encode_parts(parts: tuple[Part, ...]) -> tuple[tuple[str | bytes, ...], bytes]:
    """The normalised parts, and their fields one after another."""
    plain: list[str | bytes] = []
    fields = b""
    for index, part in enumerate(parts):
        if isinstance(part, bytes):
            plain.append(bytes(part))
            fields += b"b%d:%b," % (len(part), part)
            continue
        text = _text_of(part, index)
        data = _utf8(text, "parts[%d]", index)
        plain.append(text)
        fields += b"t%d:%b," % (len(data), data)
    return tuple(plain), fields


def _text_of(part: object, index: int) -> str:
    if isinstance(part, str):
        return _normalise(part)
    if isinstance(part, int) and not isinstance(part, bool):
        try:
            return int.__repr__(part)
        except ValueError:  # Python refuses to write out thousands of digits
            raise InvalidKey(
                f"parts[{index}] of a flight key is an int of too many digits: give it as bytes"
            ) from None
    fix = _FIXES.get(type(part), "give text, an int or bytes that stand for it")
    raise InvalidKey(f"parts[{index}] of a flight key cannot be {type(part).__name__}: {fix}")


def _normalise(text: str) -> str:
    if type(text) is not str:
        text = str.__str__(text)  # a subclass (an enum, markup) counts as its characters
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _exact(name: str, text: object) -> bytes:
    if not isinstance(text, str):
        raise InvalidKey(
            f"{name} of a flight key must be text, not {type(text).__name__}: "
            "give a str, or leave it out"
        )
    return _utf8(text, name)


def _utf8(text: str, name: str, *index: int) -> bytes:
    try:
        return str.encode(text, "utf-8")
    except UnicodeEncodeError:
        # No "from": the original error carries the whole text.
        raise InvalidKey(
            f"{name % index} of a flight key holds half of a surrogate pair: give whole "
            "characters, e.g. text decoded with errors='replace'"
        ) from None
