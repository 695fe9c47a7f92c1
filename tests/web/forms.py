"""Forms with files, byte by byte."""

from __future__ import annotations

BOUNDARY = "xxBOUNDARYxx"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def part(content: bytes, name: str = "file", filename: str | None = "cv.pdf") -> bytes:
    said = f'form-data; name="{name}"'
    if filename is not None:
        said += f'; filename="{filename}"'
    return b"--%b\r\nContent-Disposition: %b\r\n\r\n%b\r\n" % (
        BOUNDARY.encode(),
        said.encode(),
        content,
    )


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--%b--\r\n" % BOUNDARY.encode()
