"""The text of PDFs, and what is refused."""

from __future__ import annotations

import io
import zlib

import pytest
from pypdf import PdfReader, PdfWriter

from flightsvc.errors import EncryptedFile, NoText, UnreadableFile, UnsupportedFile
from flightsvc.files import read_pdf
from tests.files import samples
from tests.files.conftest import Read

CHINESE = "张三，后端工程师：负责订单系统"


def test_the_text_of_a_page(read: Read) -> None:
    assert read(read_pdf, samples.text_pdf("Ada Lovelace")) == "Ada Lovelace"


@pytest.mark.parametrize("make", [samples.chinese_pdf, samples.mapped_pdf])
def test_chinese_text(read: Read, make) -> None:
    assert read(read_pdf, make(CHINESE)) == CHINESE


def test_pages_are_parted_by_empty_lines(read: Read) -> None:
    writer = PdfWriter()
    for name in ("one", "two"):
        writer.append(PdfReader(io.BytesIO(samples.text_pdf(name))))
    assert read(read_pdf, samples.written(writer)) == "one\n\ntwo"


def test_junk_before_the_head_does_no_harm(read: Read) -> None:
    assert read(read_pdf, b"\r\njunk\r\n" + samples.text_pdf("Ada")) == "Ada"


@pytest.mark.parametrize("algorithm", ["RC4-40", "RC4-128", "AES-128", "AES-256-R5", "AES-256"])
def test_an_empty_password_opens_it(read: Read, algorithm: str) -> None:
    assert read(read_pdf, samples.encrypted_pdf("", algorithm)) == "Ada Lovelace, engineer"


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
def test_a_real_password_does_not(read: Read, algorithm: str) -> None:
    with pytest.raises(EncryptedFile) as raised:
        read(read_pdf, samples.encrypted_pdf("secret", algorithm))
    assert (raised.value.status, raised.value.code) == (422, "FILE_ENCRYPTED")


NO_TEXT = {
    "a scan": samples.scanned_pdf(),
    "blank": samples.blank_pdf(3),
    "white space": samples.text_pdf(" \xa0 \r\n\t "),
    "Chinese white space": samples.chinese_pdf("\u3000\u200b\ufeff\u2028"),
    "page numbers": samples.text_pdf("- 1 / 12 -"),
    "an empty content": samples.file_of(samples.page(samples.stream(b""))),
}


@pytest.mark.parametrize("case", NO_TEXT)
def test_h39_no_text(read: Read, case: str) -> None:
    with pytest.raises(NoText) as raised:
        read(read_pdf, NO_TEXT[case])
    assert (raised.value.status, raised.value.code) == (422, "NO_TEXT")


@pytest.mark.parametrize(
    "content",
    [samples.picture("PNG"), b"<html><body>%PDF-1.4</body></html>", b"PK\3\4" + bytes(99), b"hi"],
    ids=["a PNG", "HTML", "a ZIP", "text"],
)
def test_what_is_no_pdf(read: Read, content: bytes) -> None:
    with pytest.raises(UnsupportedFile) as raised:
        read(read_pdf, content)
    assert (raised.value.status, raised.value.code) == (415, "FILE_TYPE_UNSUPPORTED")


def looping(number: int, body: bytes) -> bytes:
    return samples.file_of({**samples.page(samples.stream(b"BT ET")), number: body})


FORM = samples.stream(
    b"/X Do /X Do", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources 7 0 R"
)
BAD = {
    "empty": b"",
    "a head alone": b"%PDF-1.7\n",
    "cut in the middle": samples.text_pdf()[:300],
    "cut at its end": samples.heavy_pdf(200_000)[:150_000],
    "zeros after its head": b"%PDF-1.7\n" + bytes(100_000),
    "noise after its head": b"%PDF-1.7\n" + bytes(range(256)) * 400,
    "a page tree in itself": looping(2, b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>"),
    "two page trees in each other": samples.file_of(
        {
            **samples.page(samples.stream(b"BT ET")),
            2: b"<< /Type /Pages /Kids [6 0 R 6 0 R] /Count 2 >>",
            6: b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 /Parent 2 0 R >>",
        }
    ),
    "a content of itself": looping(4, b"4 0 R"),
    "contents in themselves": looping(4, b"[4 0 R 4 0 R]"),
    "a parent of itself": looping(3, b"<< /Type /Page /Parent 3 0 R /Contents 4 0 R >>"),
    "a form in itself": samples.file_of(
        {
            **samples.page(samples.stream(b"/X Do"), b"/XObject << /X 6 0 R >>"),
            6: FORM,
            7: b"<< /XObject << /X 6 0 R >> >>",
        }
    ),
    "a table of objects before itself": samples.text_pdf().replace(
        b"/Root 1 0 R", b"/Root 1 0 R /Prev %d" % samples.text_pdf().index(b"xref\n0")
    ),
    "a length of itself": looping(4, b"<< /Length 4 0 R >>\nstream\nBT ET\nendstream"),
    "brackets without end": samples.file_of(samples.page(samples.stream(b"[" * 500_000))),
    "objects without end": samples.file_of({**samples.page(b"<<" * 200_000)}),
}


#: the text is whole
STILL_READ = ("a table of objects before itself",)


@pytest.mark.parametrize("case", BAD)
def test_damaged_and_endless_files_are_refused(read: Read, case: str) -> None:
    if case in STILL_READ:
        assert read(read_pdf, BAD[case]) == "Ada Lovelace, engineer"
        return
    with pytest.raises(UnreadableFile) as raised:
        read(read_pdf, BAD[case], timeout_s=3, clock_s=60)
    assert raised.value.status == 422


def test_a_stream_that_inflates_without_end(read: Read) -> None:
    bomb = samples.stream(b"(bomb) Tj " * 20_000_000, packed=True)
    assert len(bomb) < 1_000_000
    with pytest.raises(UnreadableFile):
        read(read_pdf, samples.file_of(samples.page(bomb)))


def test_a_stream_packed_many_times(read: Read) -> None:
    content = b" " * 70_000_000
    for _ in range(3):
        content = zlib.compress(content, 9)
    filters = b"/Filter [/FlateDecode /FlateDecode /FlateDecode]"
    bomb = samples.stream(content, filters)
    with pytest.raises(UnreadableFile):
        read(read_pdf, samples.file_of(samples.page(bomb)), memory_bytes=128 << 20)


def test_too_many_pages(read: Read) -> None:
    with pytest.raises(UnreadableFile, match="more than 9 pages"):
        read(read_pdf, samples.blank_pdf(10), max_pages=9)


def test_too_much_computing(read: Read) -> None:
    with pytest.raises(UnreadableFile, match="longer than the 1 s"):
        read(read_pdf, samples.long_pdf(150_000, pages=10), timeout_s=1, clock_s=60)
