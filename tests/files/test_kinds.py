"""The type of a file is what its bytes say."""

from __future__ import annotations

from pathlib import Path

import pytest

from flightsvc.files import JPEG, PDF, PNG, WEBP, kind_of
from tests.files.samples import picture, text_pdf

KINDS = {
    "a PDF": (text_pdf(), PDF),
    "a PDF after junk": (b"\r\nMIME junk\r\n" + text_pdf(), PDF),
    "a PDF after a byte order mark": (b"\xef\xbb\xbf" + text_pdf(), PDF),
    "a JPEG": (picture("JPEG"), JPEG),
    "a PNG": (picture("PNG"), PNG),
    "a WebP": (picture("WEBP"), WEBP),
    "a lossless WebP": (picture("WEBP", lossless=True), WEBP),
    "a GIF": (picture("GIF"), ""),
    "a TIFF": (picture("TIFF"), ""),
    "HTML": (b"<!DOCTYPE html><html><body>%PDF-1.4</body></html>", ""),
    "a Word file": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), ""),
    "a ZIP": (b"PK\x03\x04" + bytes(100), ""),
    "text": (b"Curriculum vitae", ""),
    "one byte": (b"%", ""),
    "nothing": (b"", ""),
}


@pytest.mark.parametrize("case", KINDS)
def test_the_content_says_it(tmp_path: Path, case: str) -> None:
    content, kind = KINDS[case]
    for name in ("file", "file.pdf", "file.png", "file.html"):
        path = tmp_path / name
        path.write_bytes(content)
        assert kind_of(path) == kind, name
