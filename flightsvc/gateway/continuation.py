"""Going on with a stream whose answer began anew.

If the owner of a flight dies, a new one asks the model again. A caller that has a part of the old
answer goes on only if the new answer begins with exactly what it has; otherwise it is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from flightsvc.errors import FlightInterrupted
from flightsvc.gateway.chunks import to_bytes
from flightsvc.gateway.merging import ONCE, grows

#: A place in an answer: the choice, then the names of the fields that lead there.
Lane = tuple[str | int, ...]



class Said:
    """What an answer has said so far, place by place."""

    def __init__(self, chunks: Iterable[bytes] = ()) -> None:
        self.lanes: dict[Lane, str] = {}
        #: by choice, the place that was written last: only there an answer goes on
        self.last: dict[str | int, Lane] = {}
        #: something was in it that cannot be compared piece by piece
        self.opaque = False
        for chunk in chunks:
            self.add(json.loads(chunk))

    def add(self, chunk: Mapping[str, Any]) -> None:
        """One chunk more."""
        for choice in chunk["choices"]:
            index = choice.get("index", 0)
            self._add((index, "delta"), choice.get("delta") or {})
            if choice.get("finish_reason"):
                self._say((index, "finish_reason"), choice["finish_reason"])
            self.opaque = self.opaque or bool(choice.get("logprobs"))

    def _add(self, at: Lane, value: Mapping[str, Any]) -> None:
        for name, each in value.items():
            if isinstance(each, str):
                self._say((*at, name), each)
            elif isinstance(each, Mapping):
                self._add((*at, name), each)
            elif name == "tool_calls" and isinstance(each, list):
                for number, call in enumerate(each):
                    self._add((*at, name, call.get("index", number)), call)
            elif each is not None and name != "index":
                self.opaque = True

    def _say(self, lane: Lane, text: str) -> None:
        held = self.lanes.get(lane)
        name = str(lane[-1])
        if held is not None and grows(name):
            text, new = held + text, text
        elif held is not None and (held == text or name in ONCE or name == "finish_reason"):
            return  # what is said once, however often it is repeated
        else:
            new = text
        self.lanes[lane] = text
        if new:
            self.last[lane[0]] = lane


class Continuation:
    """Holds a new answer back until it has said all that the old one had.

    :param chunks: those of the old answer that the caller has.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        chunks = list(chunks)
        self._had = Said(chunks)
        self._new = Said()
        self._head = _head(json.loads(chunks[0]))
        self._caught_up = False

    def take(self, chunk: bytes) -> bytes | None:
        """One chunk of the new answer.

        :returns: what the caller gets of it; None: it has all of that.
        :raises FlightInterrupted: the new answer is another one.
        """
        document = json.loads(chunk)
        if self._caught_up:
            return self.headed(document)
        self._new.add(document)
        self._compare()
        if any(len(self._new.lanes.get(lane, "")) < len(had) for lane, had in self._lanes()):
            return None
        self._caught_up = True
        choices = self._rest()
        return self.headed({**document, "choices": choices}) if choices else None

    def headed(self, document: Mapping[str, Any]) -> bytes:
        """A chunk of the new answer, under the name of the old one."""
        return to_bytes({**document, **self._head})

    def end(self) -> None:
        """The new answer is over.

        :raises FlightInterrupted: it is shorter than what the caller has.
        """
        if not self._caught_up:
            raise FlightInterrupted(retry_after_s=1)

    def _lanes(self) -> Iterable[tuple[Lane, str]]:
        return self._had.lanes.items()

    def _compare(self) -> None:
        had, new = self._had, self._new
        ends = set(had.lanes) - set(had.last.values())
        same = all(
            _agree(text, new.lanes.get(lane, ""), longer=lane not in ends)
            for lane, text in self._lanes()
        )
        over = any(
            had.last.get(lane[0], lane)[-1] == "finish_reason" and lane not in had.lanes
            for lane in new.lanes
        )
        if had.opaque or new.opaque or over or not same:
            raise FlightInterrupted(retry_after_s=1)

    def _rest(self) -> list[dict[str, Any]]:
        """What the new answer has said beyond the old one, as choices of one chunk."""
        choices: dict[str | int, dict[str, Any]] = {}
        for lane, text in self._new.lanes.items():
            rest = text[len(self._had.lanes.get(lane, "")) :]
            if not rest:
                continue
            index, *path = lane
            choice = choices.setdefault(
                index, {"index": index, "delta": {}, "finish_reason": None}
            )
            _put(choice, path, rest)
        return [choices[index] for index in choices]


def _agree(had: str, new: str, *, longer: bool) -> bool:
    """Whether a text may become, or go on, the one that the caller has.

    :param longer: whether it may go on.
    """
    if len(new) <= len(had):
        return had.startswith(new)
    return longer and new.startswith(had)


def _head(chunk: Mapping[str, Any]) -> dict[str, Any]:
    """What must not change for a caller within one answer."""
    return {name: chunk[name] for name in ("id", "created", "model") if name in chunk}


def _put(into: dict[str, Any], path: list[str | int], text: str) -> None:
    """Set a text at a place; after ``tool_calls`` comes a number, which becomes an index."""
    for at, name in enumerate(path[:-1]):
        if isinstance(name, int):
            continue
        if name == "tool_calls":
            calls, index = into.setdefault(name, []), path[at + 1]
            found = next((each for each in calls if each["index"] == index), None)
            if found is None:
                found = {"index": index}
                calls.append(found)
            into = found
        else:
            into = into.setdefault(str(name), {})
    into[str(path[-1])] = text
