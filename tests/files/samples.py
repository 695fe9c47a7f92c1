"""Files as users send them, and as attackers do. PDFs are made by hand, byte by byte."""

from __future__ import annotations

import io
import zlib
from typing import Any

from PIL import Image
from pypdf import PdfReader, PdfWriter

FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
#: one of the fonts that every viewer has for Chinese; its text is UTF-16
SONG = (
    b"<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UTF16-H "
    b"/DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light "
    b"/CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 4 >> /DW 1000 >>] >>"
)


def file_of(objects: dict[int, bytes]) -> bytes:
    """A PDF of these objects; number 1 is its root."""
    out, places = b"%PDF-1.7\n", {}
    for number, body in objects.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(
        b"%010d 00000 n \n" % places[number] if number in places else b"0000000000 65535 f \n"
        for number in range(max(objects) + 1)
    )
    start = len(out)
    size = max(objects) + 1
    return b"%bxref\n0 %d\n%btrailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        (out, size, table, size, start)
    )


def stream(content: bytes, entries: bytes = b"", *, packed: bool = False) -> bytes:
    """A stream object."""
    if packed:
        content, entries = zlib.compress(content, 9), entries + b" /Filter /FlateDecode"
    return b"<< /Length %d %b >>\nstream\n%b\nendstream" % (len(content), entries, content)


def page(content: bytes, resources: bytes = b"/Font << /F1 5 0 R >>") -> dict[int, bytes]:
    """The objects of a PDF of one page; ``content`` is the object of what stands on it."""
    return {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
        b"/Resources << %b >> >>" % resources,
        4: content,
        5: FONT,
    }


def text_pdf(text: str = "Ada Lovelace, engineer") -> bytes:
    """A page with one line."""
    return file_of(page(stream(b"BT /F1 12 Tf 72 700 Td (%b) Tj ET" % text.encode("latin-1"))))


def chinese_pdf(text: str) -> bytes:
    """A page with one line in Song."""
    shown = stream(b"BT /F1 12 Tf 72 700 Td <%b> Tj ET" % text.encode("utf-16-be").hex().encode())
    return file_of({**page(shown), 5: SONG})


def mapped_pdf(text: str) -> bytes:
    """The same with glyph numbers that only the font's own table can read."""
    pairs = [(number, char) for number, char in enumerate(dict.fromkeys(text), 1)]
    codes = {char: b"%04x" % number for number, char in pairs}
    table = b"".join(
        b"<%04x> <%b>\n" % (number, char.encode("utf-16-be").hex().encode())
        for number, char in pairs
    )
    to_unicode = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n"
        b"1 begincodespacerange <0000> <ffff> endcodespacerange\n"
        b"%d beginbfchar\n%bendbfchar\nendcmap end end" % (len(pairs), table)
    )
    font = SONG.replace(b"/UniGB-UTF16-H", b"/Identity-H /ToUnicode 6 0 R")
    shown = b"".join(codes[char] for char in text)
    return file_of(
        {
            **page(stream(b"BT /F1 12 Tf 72 700 Td <%b> Tj ET" % shown)),
            5: font,
            6: stream(to_unicode),
        }
    )


def blank_pdf(pages: int = 1) -> bytes:
    writer = PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(595, 842)
    return written(writer)


def scanned_pdf() -> bytes:
    """A page that is one picture."""
    out = io.BytesIO()
    Image.effect_noise((600, 800), 40).convert("RGB").save(out, "PDF")
    return out.getvalue()


def encrypted_pdf(password: str, algorithm: str) -> bytes:
    """With an owner's password in any case."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(text_pdf())))
    writer.encrypt(password, "owner", algorithm=algorithm)
    return written(writer)


def long_pdf(lines: int, pages: int = 1) -> bytes:
    """Work for a while: about 100,000 lines a second."""
    shown = b"BT /F1 1 Tf 9 TL 10 800 Td\n" + b"(word) Tj T*\n" * lines + b"ET"
    objects = page(stream(shown, packed=True))
    objects[2] = b"<< /Type /Pages /Kids [%b] /Count %d >>" % (b"3 0 R " * pages, pages)
    return file_of(objects)


def heavy_pdf(size: int) -> bytes:
    """A PDF of this many bytes with text on each of 40 pages; most of it are pictures."""
    picture = zlib.compress(Image.effect_noise((500, 500), 90).tobytes(), 1)
    objects = page(b"")
    kids = []
    for number in range(10, 50):
        lines = b"".join(b"(line %d of page %d) Tj T*\n" % (line, number) for line in range(60))
        objects[number] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F1 5 0 R >> /XObject << /I %d 0 R >> >> >>"
            % (number + 100, number + 200)
        )
        objects[number + 100] = stream(b"BT /F1 9 Tf 12 TL 10 800 Td\n" + lines + b"ET /I Do")
        objects[number + 200] = stream(
            picture.ljust(size // 40),
            b"/Type /XObject /Subtype /Image /Width 500 /Height 500 /ColorSpace /DeviceGray "
            b"/BitsPerComponent 8 /Filter /FlateDecode",
        )
        kids.append(b"%d 0 R" % number)
    objects[2] = b"<< /Type /Pages /Kids [%b] /Count 40 >>" % b" ".join(kids)
    return file_of(objects)


def written(writer: PdfWriter) -> bytes:
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def picture(
    kind: str, mode: str = "RGB", size: tuple[int, int] = (60, 40), **options: Any
) -> bytes:
    """Red, with a blue quarter at its upper left."""
    image = Image.new("RGB", size, "red")
    image.paste("blue", (0, 0, size[0] // 2, size[1] // 2))
    out = io.BytesIO()
    image.convert(mode).save(out, kind, **options)
    return out.getvalue()


def huge_png(width: int, height: int) -> bytes:
    """A black picture, small as a file: its lines are made one after the other."""
    packer = zlib.compressobj(1)
    line = b"\0" + bytes(width)
    packed = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    out = b"\x89PNG\r\n\x1a\n"
    for name, data in ((b"IHDR", head), (b"IDAT", packed), (b"IEND", b"")):
        crc = zlib.crc32(name + data).to_bytes(4, "big")
        out += len(data).to_bytes(4, "big") + name + data + crc
    return out
