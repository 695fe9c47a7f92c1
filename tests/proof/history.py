"""What workers did, as lines of JSON: written while they live, read when all is over.

=============  ====================================================================================
``what``       and what ``got`` says
=============  ====================================================================================
``ask``        a caller asks
``answer``     the caller's end: its role, or ``error <code>``
``acquire``    the action that a flight was told, or ``? <why>`` where the reply was lost or refused
``finish``     ``sent``; then the answer, or ``? <why>``; so too ``fail``, ``release``, ``abandon``
``beat``       only what is not OK; so too ``mark_running``
``call``       the model is called
``called``     ``returned``, ``raised`` or ``stopped``
``fault``      what was done to a worker or to Redis; ``lost …`` where data was
=============  ====================================================================================
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """One line.

    :param at: when it was known (monotonic; one clock for all processes of a machine).
    :param since: when it began, where it took a while.
    :param name: of a caller or of a call; unique.
    :param waited: the fence that an asker said it had waited for.
    :param deadline: when a caller must have its end.
    """

    what: str
    at: float = 0.0
    since: float = 0.0
    worker: str = ""
    flight: str = ""
    token: str = ""
    fence: int = 0
    got: str = ""
    value: str = ""
    name: str = ""
    waited: int = 0
    deadline: float = 0.0

    def __str__(self) -> str:
        since = f"(since {self.since:.3f})" if self.since else ""
        about = {"flight": self.flight[:6], "token": self.token[:6], "name": self.name}
        about |= {"fence": str(self.fence or ""), "waited": str(self.waited or "")}
        about |= {"value": repr(self.value) if self.value else ""}
        words = [f"{name} {said}" for name, said in about.items() if said]
        return " ".join(
            [f"{self.at:9.3f} {self.worker:5} {self.what:8} {self.got:14}", *words, since]
        )


class Journal:
    """Where one worker writes; each line is in the file at once, whatever becomes of the worker."""

    def __init__(self, path: Path | str, worker: str) -> None:
        self._worker = worker
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, what: str, **about: str | float) -> None:
        """Add a line, with the time."""
        line = {"what": what, "at": time.monotonic(), "worker": self._worker, **about}
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        """No more lines come."""
        os.close(self._file)


def read(paths: Iterable[Path]) -> list[Entry]:
    """All lines of some journals, in order of time. A last line that was cut off is left out."""
    lines = [line for path in paths for line in path.read_text().splitlines(keepends=True)]
    entries = [Entry(**json.loads(line)) for line in lines if line.endswith("\n")]
    return sorted(entries, key=lambda entry: entry.at)


def write(path: Path, history: Iterable[Entry]) -> None:
    """Keep a history in a file."""
    plain = {field.name: field.default for field in fields(Entry)}
    with path.open("w") as file:
        for entry in history:
            said = {name: value for name, value in asdict(entry).items() if value != plain[name]}
            file.write(json.dumps(said) + "\n")
