"""What schemathesis has to know to send files: it is its SCHEMATHESIS_HOOKS."""

from __future__ import annotations

import schemathesis
from hypothesis import strategies as st

from tests.files.samples import picture, text_pdf

schemathesis.openapi.media_type("application/pdf", st.just(text_pdf()))
schemathesis.openapi.media_type("image/jpeg", st.just(picture("JPEG")))
schemathesis.openapi.media_type("image/png", st.just(picture("PNG")))
schemathesis.openapi.media_type("image/webp", st.just(picture("WEBP")))
