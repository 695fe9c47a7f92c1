"""Codes of files that cannot be read, each brought about by such a file."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.files import samples
from tests.golden.scene import Scene
from tests.golden.telling import LANGUAGES, Make, is_told, listed
from tests.web.forms import FORM, form, part

REFUSED: dict[str, tuple[bytes, int]] = {
    "FILE_TYPE_UNSUPPORTED": (b"MZ\x90\0 this is no PDF", 415),
    "FILE_UNREADABLE": (samples.text_pdf()[:60], 422),
    "FILE_ENCRYPTED": (samples.encrypted_pdf("secret", "AES-256"), 422),
    "NO_TEXT": (samples.blank_pdf(), 422),
}


def upload(scene: Scene, content: bytes, language: str) -> TestResponse:
    return scene.app.test_client().post(
        "/v1/interviews/s1/extractions",
        data=form(part(content, filename="履历书.pdf")),
        headers={**FORM, "Accept-Language": language},
    )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", REFUSED)
def test_a_file_that_cannot_be_read(make: Make, code: str, language: str) -> None:
    """No model is asked, nothing is retried, nobody is woken, no state changes."""
    content, status = REFUSED[code]
    scene = make()
    reply = upload(scene, content, language)

    body: dict[str, Any] = is_told(reply, code, language, status)
    assert body["retryable"] is False
    assert scene.attempts() == (0, 0)
    assert scene.events(0.2) == []
    assert (listed(code).alert, listed(code).trips_after) == (None, 0)
    assert scene.alerted.told == []
    again = upload(scene, content, language)  # and the same words to who sends it again
    assert json.loads(again.data)["message"] == body["message"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "The file is empty."),
        (samples.text_pdf()[:60], "The file cannot be read: it is damaged."),
        (samples.long_pdf(1, 3), "The file has more than 2 pages."),
    ],
    ids=["empty", "damaged", "pages"],
)
def test_why_a_file_cannot_be_read_is_its_detail(make: Make, content: bytes, says: str) -> None:
    """The words for its user stay the list's."""
    scene = make(max_pages=2)
    body = is_told(upload(scene, content, "zh"), "FILE_UNREADABLE", "zh", 422)
    assert body["detail"] == says


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_disk_that_takes_no_file(
    make: Make,
    fault: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene, write = make(data_dir=str(tmp_path)), os.write

    def full(fd: int, data: Any) -> int:
        if "/drafts/" in os.readlink(f"/proc/self/fd/{fd}"):
            raise OSError(fault, os.strerror(fault))
        return write(fd, data)

    monkeypatch.setattr(os, "write", full)
    reply = upload(scene, samples.text_pdf(), "en")
    body = is_told(reply, "FILES_UNAVAILABLE", "en", 503)
    assert (body["retryable"], reply.headers["Retry-After"]) == (True, "60")
    assert os.strerror(fault) not in reply.text
    assert str(tmp_path) not in reply.text
    assert f"{tmp_path}/files: {os.strerror(fault)}" in caplog.text
    assert scene.attempts() == (0, 0)
    monkeypatch.undo()
    assert list((tmp_path / "files" / "drafts").iterdir()) == []
    assert upload(scene, samples.text_pdf(), "en").status_code == 200
