"""A model of fixed latency that answers anything in OpenAI's form, and says when it ended.

    python -m benchmarks.origin LATENCY_MS

Prints its port. ``GET /_ended`` gives the number of calls, and the time of the system's monotonic
clock at which the last one ended. The loader, flightsvc, nginx and Varnish all ask this one.
"""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import json
import sys
import time
from typing import Any

import gevent
from gevent.server import StreamServer

EVALUATION = {
    "score": 70,
    "logic_ok": True,
    "missing_points": ["a point"],
    "feedback": "A good answer.",
    "follow_up_needed": False,
    "follow_up_question": None,
}
ANSWER = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "model": "origin",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": json.dumps(EVALUATION)},
            }
        ],
    }
).encode()


class Origin:
    """Answers on kept connections, one request after the other."""

    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s
        self.calls = 0
        self.ended = 0.0

    def serve(self, connection: Any, _address: object) -> None:
        stream = connection.makefile("rb")
        while line := stream.readline():
            length = 0
            while (header := stream.readline().strip().lower()) != b"":
                if header.startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            stream.read(length)
            body = self._stats() if b"/_ended" in line else self._answer()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n"
            head += "Content-Type: application/json\r\nCache-Control: max-age=60\r\n\r\n"
            connection.sendall(head.encode() + body)

    def _answer(self) -> bytes:
        self.calls += 1
        gevent.sleep(self._latency_s)
        self.ended = time.monotonic()
        return ANSWER

    def _stats(self) -> bytes:
        return json.dumps({"calls": self.calls, "ended": self.ended}).encode()


def main() -> None:
    server = StreamServer(("127.0.0.1", 0), Origin(int(sys.argv[1]) / 1000).serve)
    server.start()
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
