"""Codes of files that cannot be read, each brought about by such a file."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.files import samples
from tests.golden.scene import Scene
from tests.golden.telling import LANGUAGES, Make, is_told, listed

REFUSED: dict[str, tuple[bytes, int]] = {
    "FILE_TYPE_UNSUPPORTED": (b"MZ\x90\0 this is no PDF", 415),
    "FILE_UNREADABLE": (samples.text_pdf()[:60], 422),
    "FILE_ENCRYPTED": (samples.encrypted_pdf("secret", "AES-256"), 422),
    "NO_TEXT": (samples.blank_pdf(), 422),
}


def upload(scene: Scene, content: bytes, language: str) -> TestResponse:
    return scene.app.test_client().post(
        "/v1/interviews/s1/extractions",
        data={"file": (io.BytesIO(content), "履历书.pdf")},
        headers={"Accept-Language": language},
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
