"""A steady load for looking at dashboards: duplicates, repeats, and failures by a script.

Candidates come one after the other; impatient clients send an answer several times over, reports
ask for it again later. Now and then the model fails, or is slow; once in a while it is gone, or
a worker is killed, and its clients ask again.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import random
import signal
import time
from collections import Counter, deque
from typing import Any, NamedTuple

import gevent
from gevent.pool import Pool

from flightsvc.demo.load import get
from flightsvc.demo.samples import SAMPLES, Sample
from flightsvc.demo.service import DemoService
from flightsvc.model_server.process import ModelServerProcess

HOST = "127.0.0.1"
#: questions a second; each is asked several times
RATE = 2.5
#: how often the model is gone, and for how long, in s
OUTAGE_EVERY_S, OUTAGE_S = 150.0, 10.0
#: how often a worker is killed, in s
DEATH_EVERY_S = 110.0
#: what one call costs in the demo, by stage
PRICES = {"EVALUATION": "0.004", "FOLLOW_UP": "0.002", "EXTRACTION": "0.03"}

#: words in a candidate's answer by which the model server knows how to behave
_MARKS = {
    "slow": {"latency_ms": 4_000},
    "busy": {"status": 429, "retry_after": 1},
    "broken": {"status": 500, "latency_ms": 200},
    "cut": {"cut_after_bytes": 40, "latency_ms": 300},
    "malformed": {"answer": "text", "text": "Well, it depends.", "latency_ms": 500},
}
#: how often each comes
_WEIGHTS = {"": 91, "slow": 4, "busy": 1, "broken": 2, "cut": 1, "malformed": 1}
_USUAL = {"latency_ms": 700}


def script(*, outage: bool = False) -> dict[str, Any]:
    """The model server's script."""
    marked = [
        {"name": mark, "match": {"body_contains": f"({mark})"}, "behave": behave}
        for mark, behave in _MARKS.items()
    ]
    resume = {"name": "resume", "match": {"body_contains": "resume_score"}}
    rules = [*marked, {**resume, "behave": {"latency_ms": 2_500}}]
    gone = {"status": 503, "latency_ms": 50}
    return {"rules": [], "default": gone} if outage else {"rules": rules, "default": _USUAL}


class Ask(NamedTuple):
    """One request."""

    path: str
    content_type: str
    body: bytes


class Load:
    """Asks until it is told to stop.

    :param service: whom it asks, and whose workers it kills.
    :param model: whose script it changes.
    :param seed: what comes when is drawn from it.
    """

    def __init__(self, service: DemoService, model: ModelServerProcess, *, seed: int = 7) -> None:
        self._service = service
        self._model = model
        self._random = random.Random(seed)
        self._pool = Pool(400)
        self._earlier: deque[Ask] = deque(maxlen=60)
        self._numbers = itertools.count(1)
        #: answers by status
        self.answered: Counter[str] = Counter()

    def run(self, seconds: float) -> None:
        """Ask for so long, then wait for what is still open."""
        until = time.monotonic() + seconds
        incidents = [gevent.spawn(self._outages), gevent.spawn(self._deaths)]
        try:
            while time.monotonic() < until:
                gevent.sleep(self._random.expovariate(RATE))
                self._one()
        finally:
            gevent.killall(incidents)
            self._pool.join(5)

    def _one(self) -> None:
        """A question, as often as it is asked."""
        ask = self._draw()
        draw = self._random.random()
        if draw < 0.25 and self._earlier:
            ask, times = self._random.choice(self._earlier), 2
        elif draw < 0.75:
            times = self._random.randint(2, 9)
        else:
            times = 1
        for _ in range(times):
            gevent.spawn_later(self._random.random() * 1.2, self._pool.spawn, self._send, ask)
        self._earlier.append(ask)

    def _draw(self) -> Ask:
        mark = self._random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        number = next(self._numbers)
        sample = self._random.choice(SAMPLES)
        session = f"/v1/interviews/demo-{number % 40}"
        draw = self._random.random()
        if draw < 0.10:
            return _extraction(session, number, mark)
        if draw < 0.40:
            return _follow_up(session, sample, number, mark)
        return _evaluation(session, sample, number, mark)

    def _send(self, ask: Ask, *, again: bool = True) -> None:
        connection = http.client.HTTPConnection(HOST, self._service.port, timeout=60)
        try:
            connection.request("POST", ask.path, ask.body, {"Content-Type": ask.content_type})
            answer = connection.getresponse()
            answer.read()
            self.answered[str(answer.status)] += 1
        except (OSError, http.client.HTTPException) as error:
            self.answered[type(error).__name__] += 1
            if again:
                gevent.spawn_later(0.2, self._send, ask, again=False)
        finally:
            connection.close()

    def _outages(self) -> None:
        while True:
            gevent.sleep(OUTAGE_EVERY_S)
            self._model.script(script(outage=True))
            gevent.sleep(OUTAGE_S)
            self._model.script(script())

    def _deaths(self) -> None:
        for number in itertools.count():
            gevent.sleep(DEATH_EVERY_S)
            probe = f"last-{number}"
            with contextlib.suppress(OSError, http.client.HTTPException):
                get(self._service.port, "/readyz", {"X-Request-Id": probe})
            for pid in self._service.served_by({probe}).values():
                os.kill(pid, signal.SIGKILL)


def _evaluation(session: str, sample: Sample, number: int, mark: str) -> Ask:
    said = json.loads(sample.body)
    said |= {"question_number": number % 9 + 1, "answer": _marked(sample.answer, number, mark)}
    return Ask(f"{session}/evaluations", "application/json", json.dumps(said).encode())


def _follow_up(session: str, sample: Sample, number: int, mark: str) -> Ask:
    said = {
        "current_question": sample.question,
        "answer": _marked(sample.answer, number, mark),
        "follow_up_count": 0,
        "max_follow_up": 2,
    }
    return Ask(f"{session}/follow-ups", "application/json", json.dumps(said).encode())


def _extraction(session: str, number: int, mark: str) -> Ask:
    limit = "dashboards-part"
    head = 'Content-Disposition: form-data; name="file"; filename="resume.pdf"'
    pdf = resume(_marked(f"Candidate {number}, five years of backend work", number, mark))
    body = f"--{limit}\r\n{head}\r\nContent-Type: application/pdf\r\n\r\n".encode()
    body += pdf + f"\r\n--{limit}--\r\n".encode()
    return Ask(f"{session}/extractions", f"multipart/form-data; boundary={limit}", body)


def _marked(text: str, number: int, mark: str) -> str:
    return f"{text} [{number}]" + (f" ({mark})" if mark else "")


def resume(text: str) -> bytes:
    """A PDF of one page with one line; ``text`` without brackets that do not close."""
    line = f"BT /F1 11 Tf 60 760 Td ({text}) Tj ET".encode("latin-1")
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(line), line),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    out, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(out)
    return out + b"xref\n0 6\n" + table + end
