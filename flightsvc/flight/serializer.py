"""How an answer stands in Redis: :class:`ResultSerializer` and its envelope.

An envelope is one ASCII line and a body::

    flightsvc-result 1 json zlib base64 <size> <stored> <checksum> <seal>\\n<body>

=========  ==========================================================================
version    1; another number is another layout of the words between it and the seal
kind       ``json`` or ``bytes``: what the data decodes to
packing    ``zlib`` or ``none``
encoding   ``base64`` (the first article's choice) or ``raw``
size       length of the data, unpacked, in bytes
stored     length of the body, in bytes
checksum   CRC-32 of the words before it and of the unpacked data, 8 hex digits
seal       CRC-32 of the line before it and of the body as stored, 8 hex digits
=========  ==========================================================================

Name, version and seal keep their place in every version. So damage can be told from an envelope of
a newer release, which must be left alone. The checksum alone would not do: unused bits of Base64
and of deflate can change without any change of the data.
"""

from __future__ import annotations

import binascii
import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from zlib_ng import zlib_ng

from flightsvc.flight.strict_json import LIMIT_SETTING, to_json, too_large

VERSION = 1
#: Shorter data is not worth compressing, in bytes.
COMPRESS_ABOVE = 1024
COMPRESS_LEVEL = 4

Encoding = Literal["base64", "raw"]
Kind = Literal["json", "bytes"]

_NAME = b"flightsvc-result"
_LONGEST_LINE = 200
_LINE = re.compile(rb"(flightsvc-result ([1-9][0-9]{0,8}) ([!-~][ -~]*)) ([0-9a-f]{8})")
_NUMBER = rb"(0|[1-9][0-9]{0,17})"
_FIELDS = re.compile(
    rb"(json|bytes) (none|zlib) (base64|raw) " + _NUMBER + rb" " + _NUMBER + rb" ([0-9a-f]{8})"
)
#: Not a zlib.error; and the stub of zlib-ng calls it an instance.
_ZLIB_ERROR: type[Exception] = zlib_ng.error  # type: ignore[assignment]


class UnreadableResult(Exception):
    """A stored answer that this worker cannot use; never told to clients, always a miss."""


class CorruptResult(UnreadableResult):
    """The blob is damaged, or holds more than may be unpacked; it should be discarded."""


class UnknownVersion(UnreadableResult):
    """The blob is whole but of a newer release; it must be left alone.

    :param version: the version that it names.
    """

    def __init__(self, version: int) -> None:
        super().__init__(f"envelope version {version}; this release reads {VERSION}")
        self.version = version


@dataclass(frozen=True, slots=True)
class Payload:
    """An answer as immutable bytes, safe to share between callers."""

    kind: Kind
    data: bytes

    def thaw(self) -> Any:
        """The value, decoded afresh by every call, so that no two callers share what can change.

        :raises CorruptResult: if the data is no JSON after all.
        """
        if self.kind == "bytes":
            return self.data
        try:
            return json.loads(self.data.decode("utf-8"))
        except (ValueError, RecursionError):
            raise CorruptResult("the data of the envelope is not JSON") from None


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload ready for Redis.

    ``codec`` is packing and encoding, e.g. ``zlib+base64``; ``size`` the unpacked length in bytes;
    ``checksum`` the CRC-32 in the envelope, 8 hex digits.
    """

    blob: bytes
    codec: str
    size: int
    checksum: str


class ResultSerializer:
    """Values to payloads, payloads to envelopes, and back.

    :param max_bytes: longest data that is stored or unpacked, in bytes, uncompressed.
    :param encoding: how new envelopes are written; both are always read.
    """

    def __init__(self, max_bytes: int, encoding: Encoding = "base64") -> None:
        self._max_bytes = max_bytes
        self._encoding = encoding

    def freeze(self, value: object) -> Payload:
        """A value as a payload.

        Bytes stay bytes. Everything else must be JSON with text as keys; tuples come back as lists,
        and subclasses (enums of text, ordered dicts) as their plain types.

        :raises ResultRejected: ``RESULT_NOT_SERIALIZABLE`` or ``RESULT_TOO_LARGE``; the message
            never holds the value.
        """
        if isinstance(value, bytes):
            kind: Kind = "bytes"
            data = bytes(value)
        else:
            kind = "json"
            data = to_json(value, self._max_bytes)
        if len(data) > self._max_bytes:
            raise too_large(value, f"{len(data)}", self._max_bytes)
        return Payload(kind, data)

    def pack(self, payload: Payload) -> Envelope:
        """The envelope of a payload: compressed if that helps, then encoded."""
        packing, body = "none", payload.data
        if len(body) > COMPRESS_ABOVE:
            packed = zlib_ng.compress(body, COMPRESS_LEVEL)
            if len(packed) < len(body):
                packing, body = "zlib", packed
        if self._encoding == "base64":
            body = binascii.b2a_base64(body, newline=False)
        size = len(payload.data)
        words = f"{payload.kind} {packing} {self._encoding} {size} {len(body)}".encode()
        checksum = _checksum(words, payload.data)
        blob = seal(VERSION, b"%b %b" % (words, checksum), body)
        return Envelope(blob, f"{packing}+{self._encoding}", size, checksum.decode())

    def unpack(self, blob: bytes) -> Payload:
        """The payload of an envelope, whatever its encoding.

        Never unpacks more than the envelope declares, nor more than ``max_bytes``.

        :raises CorruptResult: empty, cut, changed, extended, or over the limit.
        :raises UnknownVersion: whole, but written by a newer release.
        """
        words, body = _unseal(blob)
        match = _FIELDS.fullmatch(words)
        if match is None:
            raise CorruptResult("the envelope's line does not fit its version")
        kind, packing, encoding, size_word, stored, checksum = match.groups()
        size = int(size_word)
        if size > self._max_bytes:
            raise CorruptResult(f"the envelope declares {size} bytes, over {LIMIT_SETTING}")
        if int(stored) != len(body) or len(body) > _longest_body(size):
            raise CorruptResult("the envelope's body has another length than declared")
        data = _decode(body, packing, encoding, size)
        if _checksum(words[: match.end(5)], data) != checksum:
            raise CorruptResult("the envelope's checksum does not fit its data")
        return Payload("json" if kind == b"json" else "bytes", data)


def seal(version: int, words: bytes, body: bytes) -> bytes:
    """An envelope from its parts; valid for every version, also those that are still to come.

    :param words: what stands between version and seal, printable ASCII.
    """
    line = b"%b %d %b" % (_NAME, version, words)
    return b"%b %08x\n%b" % (line, zlib_ng.crc32(body, zlib_ng.crc32(line)), body)


def _unseal(blob: bytes) -> tuple[bytes, memoryview]:
    """The words of an intact envelope of this version, and its body."""
    end = blob.find(b"\n", 0, _LONGEST_LINE)
    match = _LINE.fullmatch(blob, 0, end) if end > 0 else None
    if match is None:
        raise CorruptResult("not an envelope" if blob else "the blob is empty")
    line, version, words, sealed = match.groups()
    body = memoryview(blob)[end + 1 :]
    if b"%08x" % zlib_ng.crc32(body, zlib_ng.crc32(line)) != sealed:
        raise CorruptResult("the envelope's seal does not fit")
    if int(version) != VERSION:
        raise UnknownVersion(int(version))
    return words, body


def _decode(body: memoryview, packing: bytes, encoding: bytes, size: int) -> bytes:
    """The data of a body, exactly ``size`` bytes."""
    try:
        packed = binascii.a2b_base64(body, strict_mode=True) if encoding == b"base64" else body
        data = _inflate(packed, size) if packing == b"zlib" else bytes(packed)
    except (binascii.Error, _ZLIB_ERROR) as error:
        raise CorruptResult("the envelope's body cannot be decoded") from error
    if len(data) != size:
        raise CorruptResult("the envelope's data has another length than declared")
    return data


def _longest_body(size: int) -> int:
    """Length of the Base64 of ``size`` bytes; nothing is stored that packing made longer."""
    return 4 * ((size + 2) // 3)


def _inflate(packed: bytes | memoryview, size: int) -> bytes:
    stream = zlib_ng.decompressobj()
    data = stream.decompress(packed, size + 1)  # one more, to see that there is no more
    if not stream.eof or stream.unused_data:
        raise CorruptResult("the envelope's compressed data is cut, too long or extended")
    return data


def _checksum(words: bytes, data: bytes) -> bytes:
    return b"%08x" % zlib_ng.crc32(data, zlib_ng.crc32(words))
