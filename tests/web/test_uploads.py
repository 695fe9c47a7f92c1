"""Files as they come over the wire, into a small app under gunicorn with gevent (H38 to H41)."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import gevent
import pytest
from PIL import Image

from flightsvc.web.uploads import MAX_REST
from tests.files import samples
from tests.processes import wait_until
from tests.support.service import Reply, Service
from tests.web.forms import BOUNDARY, FORM, form, part

LIMIT = 12 * 1024 * 1024


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: tmp_path_factory.mktemp(name) for name in ("data", "tmp")}


@pytest.fixture(scope="module")
def uploads(folders: dict[str, Path]) -> Iterator[Service]:
    env = {
        "FLIGHTSVC_MODE": "local",
        "FLIGHTSVC_DATA_DIR": str(folders["data"]),
        "FLIGHTSVC_MAX_FILE_BYTES": str(LIMIT),
        "FLIGHTSVC_BODY_TIMEOUT_MS": "1500",
        "TMPDIR": str(folders["tmp"]),
    }
    service = Service(env, workers=1, app="tests.web.upload_app:app")
    with closing(service):
        yield service.start(probe="/healthz")


@pytest.fixture
def kept(folders: dict[str, Path]) -> Iterator[Path]:
    """The folder of the files, emptied; nothing may be left half done in it or elsewhere."""
    folder = folders["data"] / "files"
    for name in names(folder):
        next(folder.rglob(name)).unlink()
    yield folder
    wait_until(lambda: not any((folder / "drafts").glob("*")))
    assert names(folders["tmp"]) == []


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def post(service: Service, body: bytes, where: str = "/files") -> Reply:
    return service.get(where, method="POST", body=body, headers=FORM)


def connected(service: Service, head: bytes) -> socket.socket:
    """A request by hand, up to the end of its head."""
    port = int(service.url.rpartition(":")[2])
    sock = socket.create_connection(("127.0.0.1", port), timeout=60)
    where, _, more = head.partition(b"\n")
    sock.sendall(
        b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Type: %b\r\n%b\r\n\r\n"
        % (where, FORM["Content-Type"].encode(), more)
    )
    return sock


def status(sock: socket.socket) -> int:
    with sock, sock.makefile("rb") as reader:
        return int(reader.readline().split()[1])


def code(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.json()["code"]


def test_a_file_and_its_form(uploads: Service, kept: Path) -> None:
    content = os.urandom(300_000)
    digest = hashlib.sha256(content).hexdigest()
    body = form(part(content), part("后端\r\n工程师".encode(), "position", None))

    reply = post(uploads, body)

    assert reply.json() == {
        "digest": digest,
        "size": len(content),
        "name": "cv.pdf",
        "form": {"position": "后端\r\n工程师"},
    }
    assert names(kept) == [digest]
    assert next(kept.rglob(digest)).read_bytes() == content


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("履历书.pdf", "履历书.pdf"),
        ("../../x.pdf", "../../x.pdf"),
        ("..", ".."),
        ("", ""),
        ("x" * 300, "x" * 255),
        ("a\0b.pdf", "ab.pdf"),
        ("a\tb\x1b[31m\u202e.pdf", "ab[31m.pdf"),
        ("C:\\\\Users\\\\a\\\\cv.pdf", "cv.pdf"),
        ("/etc/passwd", "/etc/passwd"),
    ],
)
def test_h40_the_name_is_data_only(uploads: Service, kept: Path, sent: str, name: str) -> None:
    content = b"%PDF " + sent.encode()
    reply = post(uploads, form(part(content, filename=sent)))

    assert reply.status == 200, reply.body
    assert reply.json()["name"] == name
    assert names(kept.parent) == [hashlib.sha256(content).hexdigest()]


def test_h40_a_name_in_the_extended_form(uploads: Service, kept: Path) -> None:
    body = form(part(b"x")).replace(
        b'filename="cv.pdf"', b"filename*=UTF-8''%E5%B1%A5%E5%8E%86%2F..%2F.pdf"
    )
    assert post(uploads, body).json()["name"] == "履历/../.pdf"


def test_h38_a_chunked_body_over_the_limit(uploads: Service, kept: Path) -> None:
    sock = connected(uploads, b"/files?limit=100000\nTransfer-Encoding: chunked")
    sent = part(b"x" * 200_000 + b"\r\n")[:-4]
    for at in range(0, 170_000, 10_000):
        sock.sendall(b"2710\r\n%b\r\n" % sent[at : at + 10_000])
        gevent.sleep(0)

    assert status(sock) == 413  # the end never came
    assert names(kept) == []


def test_h38_a_length_over_the_limit_is_refused_before_the_body_comes(
    uploads: Service, kept: Path
) -> None:
    sock = connected(uploads, b"/files\nContent-Length: %d" % (LIMIT + MAX_REST + 1))
    assert status(sock) == 413
    assert names(kept) == []


def test_the_limit_is_the_files_to_the_byte(uploads: Service, kept: Path) -> None:
    assert post(uploads, form(part(b"x" * 5_000)), "/files?limit=5000").status == 200
    reply = post(uploads, form(part(b"y" * 5_001)), "/files?limit=5000")
    assert code(reply) == (413, "PAYLOAD_TOO_LARGE")
    assert len(names(kept)) == 1


def test_a_chunked_file_within_the_limit(uploads: Service, kept: Path) -> None:
    body = form(part(b"\r\n--xxBOUNDARYx" * 50_000))
    sock = connected(uploads, b"/files\nTransfer-Encoding: chunked")
    for at in range(0, len(body), 77_777):
        piece = body[at : at + 77_777]
        sock.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
    sock.sendall(b"0\r\n\r\n")

    assert status(sock) == 200
    assert names(kept) == [hashlib.sha256(b"\r\n--xxBOUNDARYx" * 50_000).hexdigest()]


REFUSED = {
    "no part": (form(), (422, "INPUT_INVALID")),
    "no file": (form(part(b"dev", "position", None)), (422, "INPUT_INVALID")),
    "a field in place of the file": (form(part(b"x", filename=None)), (422, "INPUT_INVALID")),
    "nothing chosen": (form(part(b"", filename="")), (422, "INPUT_INVALID")),
    "two files": (form(part(b"a"), part(b"b")), (422, "INPUT_INVALID")),
    "a file elsewhere": (form(part(b"a"), part(b"b", "other")), (422, "INPUT_INVALID")),
    "an unknown field": (form(part(b"a"), part(b"b", "colour", None)), (422, "INPUT_INVALID")),
    "a field twice": (
        form(part(b"a"), *[part(b"b", "position", None)] * 2),
        (422, "INPUT_INVALID"),
    ),
    "a field not in UTF-8": (
        form(part(b"a"), part(b"\xff\xfe", "position", None)),
        (422, "INPUT_INVALID"),
    ),
    "a long field": (
        form(part(b"x" * 10**6), part(b"b" * 70_000, "position", None)),
        (413, "PAYLOAD_TOO_LARGE"),
    ),
    "many parts": (form(*[part(b"", "", None)] * 2), (422, "INPUT_INVALID")),
    "a long head": (form(part(b"a", filename="n" * 200_000)), (413, "PAYLOAD_TOO_LARGE")),
    "a head not in UTF-8": (
        form(part(b"a")).replace(b"cv.pdf", b"\xff.pdf"),
        (400, "REQUEST_INVALID"),
    ),
    "no disposition": (
        form(part(b"a")).replace(b"Content-Disposition", b"X"),
        (400, "REQUEST_INVALID"),
    ),
    "no end": (form(part(b"a" * 100_000))[:-30], (400, "REQUEST_INVALID")),
    "another boundary": (form(part(b"a")).replace(b"BOUND", b"bound"), (400, "REQUEST_INVALID")),
    "nothing": (b"", (400, "REQUEST_INVALID")),
    "no form": (b'{"a": 1}', (400, "REQUEST_INVALID")),
}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (form(part(b"x", filename=None)), "file: send it as a file, with a filename."),
        (form(part(b"x"), part(b"y", "", None)), "A field of the form has no name: name each one."),
        (form(part(b"x", "")), "A field of the form has no name: name each one."),
    ],
)
def test_what_is_wrong_with_a_form_is_named(
    uploads: Service, kept: Path, body: bytes, said: str
) -> None:
    assert post(uploads, body).json()["detail"] == said
    assert names(kept) == []


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_nothing(uploads: Service, kept: Path, case: str) -> None:
    body, expected = REFUSED[case]
    assert code(post(uploads, body)) == expected
    assert names(kept) == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "application/pdf"},
        {"Content-Type": "multipart/form-data"},
        {"Content-Type": "multipart/form-data; boundary="},
        {"Content-Type": "multipart/form-data; boundary=" + "x" * 71},
        {"Content-Type": "multipart/mixed; boundary=" + BOUNDARY},
        {**FORM, "Content-Encoding": "gzip"},
    ],
)
def test_what_is_no_form_is_refused(
    uploads: Service, kept: Path, headers: dict[str, str]
) -> None:
    reply = uploads.get("/files", method="POST", body=form(part(b"a")), headers=headers)
    assert code(reply) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert names(kept) == []


@pytest.mark.parametrize("how", [b"Content-Length: 900000", b"Transfer-Encoding: chunked"])
def test_a_client_that_goes_away_leaves_nothing(uploads: Service, kept: Path, how: bytes) -> None:
    sock = connected(uploads, b"/files\n" + how)
    piece = part(b"x" * 500_000)
    sock.sendall(piece if b"Length" in how else b"%x\r\n%b\r\n" % (len(piece), piece))
    wait_until(lambda: any((kept / "drafts").glob("*")))

    sock.close()

    wait_until(lambda: names(kept) == [])
    assert "Traceback" not in uploads.log()


@pytest.mark.parametrize(("limit", "expected"), [(1_000_000, 408), (9_000_000, 200)])
def test_the_time_grows_with_the_limit(
    uploads: Service, kept: Path, limit: int, expected: int
) -> None:
    body = form(part(b"slow"))
    head = b"/files?limit=%d\nContent-Length: %d" % (limit, len(body))
    sock = connected(uploads, head)
    sock.sendall(body[:50])
    gevent.sleep(2)
    sock.sendall(body[50:])

    assert status(sock) == expected


def test_large_files_at_once_take_little_memory(uploads: Service, kept: Path) -> None:
    contents = [os.urandom(8_000_000) for _ in range(6)]
    post(uploads, form(part(b"first")))
    before = uploads.get("/healthz").json()["peak"]

    callers = [gevent.spawn(post, uploads, form(part(content))) for content in contents]
    replies = [caller.get(timeout=60) for caller in callers]

    digests = [hashlib.sha256(content).hexdigest() for content in contents]
    assert [reply.json()["digest"] for reply in replies] == digests
    assert uploads.get("/healthz").json()["peak"] - before < 16_000_000


def test_h41_a_large_pdf_holds_nobody_up(uploads: Service, kept: Path) -> None:
    content = samples.heavy_pdf(10 * 1024 * 1024)
    assert len(content) > 10_000_000
    uploads.get("/healthz?reset=1")
    readers = [gevent.spawn(post, uploads, form(part(content)), "/resumes") for _ in range(3)]
    times = []
    while not all(reader.ready() for reader in readers):
        began = time.perf_counter()
        assert uploads.get("/healthz").status == 200
        times.append(time.perf_counter() - began)
        gevent.sleep(0.1)

    assert all("line 59 of page 49" in reader.get().json()["text"] for reader in readers)
    assert len(times) > 3
    assert max(times) < 0.5
    assert uploads.get("/healthz").json()["latest"] < 0.5


def test_h39_a_scan_is_told_apart(uploads: Service, kept: Path) -> None:
    for content in (samples.scanned_pdf(), samples.blank_pdf(), samples.text_pdf("  ")):
        assert code(post(uploads, form(part(content)), "/resumes")) == (422, "NO_TEXT")


LIES = {
    "a PNG": ("/resumes", samples.picture("PNG"), (415, "FILE_TYPE_UNSUPPORTED")),
    "HTML": ("/resumes", b"<html></html>", (415, "FILE_TYPE_UNSUPPORTED")),
    "nothing": ("/resumes", b"", (422, "FILE_UNREADABLE")),
    "a cut PDF": ("/resumes", samples.text_pdf()[:200], (422, "FILE_UNREADABLE")),
    "encrypted": ("/resumes", samples.encrypted_pdf("x", "AES-256"), (422, "FILE_ENCRYPTED")),
    "no picture": ("/pictures", samples.text_pdf(), (415, "FILE_TYPE_UNSUPPORTED")),
    "a cut picture": ("/pictures", samples.picture("JPEG")[:400], (422, "FILE_UNREADABLE")),
}


@pytest.mark.parametrize("case", LIES)
def test_files_that_lie(uploads: Service, kept: Path, case: str) -> None:
    where, content, expected = LIES[case]
    assert code(post(uploads, form(part(content, filename="cv.pdf")), where)) == expected


def test_a_picture(uploads: Service, kept: Path) -> None:
    reply = post(uploads, form(part(samples.picture("PNG"))), "/pictures")
    assert Image.open(io.BytesIO(reply.body)).size == (60, 40)
