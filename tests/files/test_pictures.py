"""Pictures leave as plain upright JPEGs."""

from __future__ import annotations

import io
from typing import Any

import pytest
from PIL import Image, ImageCms, ImageOps

from flightsvc.errors import SettingsError, UnreadableFile, UnsupportedFile
from flightsvc.files import read_image
from flightsvc.settings import Settings
from tests.files import samples
from tests.files.conftest import Read

ORIENTATION, GPS, MAKER = 0x0112, 0x8825, 0x010F


def opened(content: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(content))
    assert image.format == "JPEG"
    assert image.mode == "RGB"
    return image


def near(image: Image.Image, at: tuple[int, int], color: tuple[int, int, int]) -> bool:
    found = image.getpixel(at)
    assert isinstance(found, tuple)
    return all(abs(is_ - should) < 24 for is_, should in zip(found, color, strict=True))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_picture_is_the_same_to_the_eye(read: Read, kind: str) -> None:
    image = opened(read(read_image, samples.picture(kind)))

    assert image.size == (60, 40)
    assert near(image, (5, 5), (0, 0, 255))
    assert near(image, (55, 35), (255, 0, 0))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16", "CMYK"])
def test_any_colours(read: Read, mode: str) -> None:
    kind = "JPEG" if mode == "CMYK" else "PNG"
    if mode == "I;16":
        out = io.BytesIO()
        Image.new("I;16", (60, 40), 0x8000).save(out, "PNG")
        image = opened(read(read_image, out.getvalue()))
        assert near(image, (5, 5), (128, 128, 128))
        return
    image = opened(read(read_image, samples.picture(kind, mode)))

    assert image.size == (60, 40)
    assert not near(image, (5, 5), (255, 255, 255))


def test_what_is_clear_is_white(read: Read) -> None:
    out = io.BytesIO()
    Image.new("RGBA", (20, 20), (0, 0, 0, 0)).save(out, "PNG")
    assert near(opened(read(read_image, out.getvalue())), (9, 9), (255, 255, 255))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("held", range(1, 9))
def test_it_stands_upright(read: Read, kind: str, held: int) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = held
    content = samples.picture(kind, exif=exif)

    image = opened(read(read_image, content))

    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(content))).convert("RGB")
    assert image.size == upright.size
    for at in ((5, 5), (image.width - 5, 5), (5, image.height - 5)):
        pixel = upright.getpixel(at)
        assert isinstance(pixel, tuple)
        assert near(image, at, pixel)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_what_else_it_says_stays_behind(read: Read, kind: str) -> None:
    exif = Image.Exif()
    exif[MAKER] = "SecretCam"
    exif[ORIENTATION] = 6
    exif[GPS] = {1: "N", 2: (52.0, 31.0, 12.0)}
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/">SecretCam</x:xmpmeta>'
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    more: dict[str, Any] = {"comment": b"SecretCam", "xmp": xmp} if kind == "JPEG" else {}
    content = samples.picture(kind, exif=exif, icc_profile=profile, **more)
    assert b"SecretCam" in content

    found = read(read_image, content)

    assert b"SecretCam" not in found
    assert b"Exif" not in found
    image = opened(found)
    assert dict(image.getexif()) == {}
    assert image.info.keys() <= {"jfif", "jfif_version", "jfif_unit", "jfif_density", "dpi"}


def test_exif_that_is_junk_does_no_harm(read: Read) -> None:
    content = samples.picture("JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff" + b"\xff" * 40)
    assert opened(read(read_image, content)).size == (60, 40)


def test_a_picture_that_is_too_large_as_a_file_is_made_coarser(read: Read) -> None:
    out = io.BytesIO()
    Image.effect_noise((400, 400), 90).convert("RGB").save(out, "PNG")

    fine, coarse = (
        len(read(read_image, out.getvalue(), max_image_bytes=most)) for most in (1_000_000, 80_000)
    )

    assert coarse < 80_000 < fine
    with pytest.raises(UnreadableFile, match="5000 bytes"):
        read(read_image, out.getvalue(), max_image_bytes=5_000)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_cut_picture_is_refused(read: Read, kind: str) -> None:
    whole = samples.picture(kind, size=(400, 300))
    for length in (40, len(whole) // 2, len(whole) - 60):
        with pytest.raises(UnreadableFile):
            read(read_image, whole[:length])


@pytest.mark.parametrize(
    "content",
    [samples.text_pdf(), samples.picture("GIF"), samples.picture("TIFF"), b"<svg/>", b"BM" * 99],
    ids=["a PDF", "a GIF", "a TIFF", "an SVG", "a BMP"],
)
def test_what_is_no_picture(read: Read, content: bytes) -> None:
    with pytest.raises(UnsupportedFile):
        read(read_image, content)


def test_nothing(read: Read) -> None:
    with pytest.raises(UnreadableFile, match="empty"):
        read(read_image, b"")


def test_a_picture_of_enormous_pixels(read: Read) -> None:
    bomb = samples.huge_png(8_000, 8_000)
    assert len(bomb) < 1_000_000
    with pytest.raises(UnreadableFile, match="more than 50000000 pixels"):
        read(read_image, bomb)


def test_a_picture_that_is_wider_than_a_jpeg_can_be(read: Read) -> None:
    out = io.BytesIO()
    Image.new("L", (65_501, 2)).save(out, "PNG")
    with pytest.raises(UnreadableFile, match="wider or higher than the 65500 pixels"):
        read(read_image, out.getvalue())
    out = io.BytesIO()
    Image.new("L", (2, 65_500)).save(out, "PNG")
    assert opened(read(read_image, out.getvalue())).size == (2, 65_500)


def test_a_picture_that_needs_more_memory_than_there_is(read: Read) -> None:
    small = {"max_pixels": 1 << 40, "memory_bytes": 128 << 20}
    with pytest.raises(UnreadableFile, match="more memory"):
        read(read_image, samples.huge_png(10_000, 10_000), **small)


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_the_largest_that_is_allowed_can_be_read(read: Read, mode: str) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    content = samples.picture("PNG", mode, (10_000, 5_000), exif=exif, compress_level=1)

    assert opened(read(read_image, content)).size == (5_000, 10_000)


def test_more_pixels_than_memory_are_refused_at_the_start() -> None:
    with pytest.raises(SettingsError, match=r"max_pixels.*at least 1082"):
        Settings.checked(mode="local", max_pixels=100_000_000)
