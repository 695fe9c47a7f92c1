"""What a file is, by its content: names and declared types are its sender's word."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import puremagic

PDF, JPEG, PNG, WEBP = "application/pdf", "image/jpeg", "image/png", "image/webp"
KINDS = (PDF, JPEG, PNG, WEBP)
#: A PDF may begin with so much else, in bytes, and viewers open it (ISO 32000-1, annex H.3.4.1).
PDF_HEAD = 1024


def kind_of(path: Path) -> str:
    """The type of a file: ``application/pdf``, ``image/jpeg``, ``image/png``, ``image/webp``.

    It says what the file claims to be by its first bytes, not that it is whole. Reads the disk.

    :returns: empty if it is none of these.
    """
    with path.open("rb") as file:
        head = file.read(PDF_HEAD)
        if not head:
            return ""
        file.seek(0)
        found = _claims(file)
    for kind in found:
        if kind in KINDS:
            return kind
    return PDF if not found and b"%PDF-" in head else ""


def _claims(file: BinaryIO) -> list[str]:
    """The types that its bytes fit, the likeliest first."""
    try:
        return [match.mime_type for match in puremagic.magic_stream(file) if match.mime_type]
    except puremagic.PureError:
        return []
