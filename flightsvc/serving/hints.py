"""The line that a newcomer can paste into another terminal."""

from __future__ import annotations

import json

from flightsvc.serving.addresses import Address

_SAMPLE = {
    "question_number": 1,
    "question": "What does a database index cost?",
    "answer": "A database index costs space, and every write has to keep the index in order.",
}


def first_request(listening: list[Address], *, tokens: bool) -> str:
    """Address of the service and one ``curl`` line that asks it.

    :param listening: addresses that the service is bound to; the first counts.
    :param tokens: whether a request needs a token.
    """
    first = listening[0] if listening else ("127.0.0.1", 8000)
    if isinstance(first, tuple):
        host = f"[{first[0]}]" if ":" in str(first[0]) else first[0]
        base, door = f"http://{host}:{first[1]}", ""
    else:
        base, door = "http://localhost", f"--unix-socket '{first!s}' "
    token = "-H 'Authorization: Bearer <token>' " if tokens else ""
    return (
        f"\nflightsvc serves {door or base}\nTry:\n  curl -i {door}{base}"
        f"/v1/interviews/demo/evaluations {token}"
        f"-H 'Content-Type: application/json' -d '{json.dumps(_SAMPLE)}'\n"
    )
