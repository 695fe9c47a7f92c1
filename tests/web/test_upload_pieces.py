"""A file is the same wherever the network cuts its form, and no form is more than refused."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st
from werkzeug.wrappers import Request

from flightsvc.errors import FlightSvcError
from flightsvc.files import FileStore, open_file_store
from flightsvc.settings import Settings
from flightsvc.web.uploads import read_upload
from tests.web.forms import BOUNDARY, FORM, form, part


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileStore]:
    folder = tmp_path_factory.mktemp("any")
    store = open_file_store(Settings(mode="local", data_dir=str(folder)))
    yield store
    store.close()


class Pieces(io.RawIOBase):
    """A body that comes in pieces of these sizes, over and over."""

    def __init__(self, body: bytes, sizes: list[int]) -> None:
        self._body, self._sizes = io.BytesIO(body), sizes

    def read(self, size: int = -1) -> bytes:
        self._sizes.append(step := self._sizes.pop(0))
        return self._body.read(min(size, step))


def request_of(body: bytes, sizes: list[int]) -> Request:
    return Request(
        {
            "REQUEST_METHOD": "POST",
            "CONTENT_TYPE": FORM["Content-Type"],
            "wsgi.input": Pieces(body, sizes),
            "wsgi.input_terminated": True,
        }
    )


SETTINGS = Settings(mode="local")
TEASERS = st.sampled_from([b"\r", b"\n", b"\r\n", b"--", b"-", b"xxBOUNDARYx", b"\r\n--xx", b"x"])
CONTENTS = (
    st.lists(TEASERS | st.binary(max_size=9), max_size=60)
    .map(b"".join)
    .filter(lambda content: b"--" + BOUNDARY.encode() not in content)
)
SIZES = st.lists(st.integers(1, 200), min_size=1, max_size=8)


@effort(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=CONTENTS, sizes=SIZES)
def test_any_content_in_any_pieces(store: FileStore, content: bytes, sizes: list[int]) -> None:
    body = form(part(b"dev", "position", None), part(content))

    upload = read_upload(
        request_of(body, sizes),  # type: ignore[arg-type]
        SETTINGS,
        store,
        limit=10_000,
        fields=("position",),
    )

    assert upload.stored.digest == hashlib.sha256(content).hexdigest()
    assert upload.form == {"position": "dev"}


@effort(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(pieces=st.lists(TEASERS | st.sampled_from([part(b"x"), form()]) | st.binary(max_size=9)))
def test_any_body_is_read_or_refused(store: FileStore, pieces: list[bytes]) -> None:
    try:
        upload = read_upload(
            request_of(part(b"x") + b"".join(pieces), [50]),  # type: ignore[arg-type]
            SETTINGS,
            store,
            limit=10_000,
        )
    except FlightSvcError as error:
        assert error.status in (400, 413, 422)  # noqa: PT017
    else:
        assert upload.stored.digest in store
