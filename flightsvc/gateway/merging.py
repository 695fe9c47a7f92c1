"""How what an answer says piece by piece is joined, with nothing lost.

Texts that are known to grow are joined, objects merged, lists made longer; of anything else the
last word counts. Text and parts become a list of parts. What cannot be joined is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flightsvc.errors import AnswerInvalid

#: Said once; models that say them again in each chunk do not mean more of them.
ONCE = frozenset({"id", "type", "role", "index", "name"})
#: What a message says: as text, as parts, or first one and then the other.
_SPOKEN = frozenset({"content", "reasoning", "reasoning_content", "refusal", "thinking"})
_GROWING = _SPOKEN | {
    "arguments", "code", "data", "input", "output", "partial_json", "signature", "summary", "text",
    "thought", "thoughts", "transcript",
}  # fmt: skip


def grows(name: str) -> bool:
    """Whether the texts of a field that come one after the other are one text."""
    return name in _GROWING or name.endswith(("_content", "_text"))


class Text:
    """A text that still grows, in pieces."""

    __slots__ = ("pieces",)

    def __init__(self, piece: str) -> None:
        self.pieces = [piece]

    def __bool__(self) -> bool:
        return any(self.pieces)


def merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add what a chunk says to what was said before.

    :raises AnswerInvalid: both cannot be true.
    """
    for name, value in more.items():
        held = into.get(name)
        if value is None:
            into.setdefault(name, None)
        elif held is None:
            into[name] = _begun(name, value)
        elif _is_nothing(value):
            continue
        elif _is_nothing(held):
            into[name] = _begun(name, value)
        else:
            into[name] = _joined(name, held, value)


def check_message(message: Mapping[str, Any]) -> None:
    """Whether the tool calls of a message, or of a piece of it, have their form.

    :raises AnswerInvalid: they have not.
    """
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list):
        raise AnswerInvalid("The tool calls of the model's answer are no list.")
    for call in calls:
        if (
            not isinstance(call, Mapping)
            or not isinstance(call.get("function") or {}, Mapping)
            or not isinstance(call.get("id") or "", str)
            or (call.get("index") is not None and type(call["index"]) is not int)
        ):
            raise AnswerInvalid("A tool call of the model's answer has not the form of one.")


@dataclass(slots=True)
class _Call:
    """A tool call; ``said``: the model's own number for it."""

    said: int | None
    number: int
    value: dict[str, Any]

    def may_be(self, item: Mapping[str, Any]) -> bool:
        """Whether a piece can belong to it: the id says it, else the name of the tool."""
        if self.value.get("id") and item.get("id"):
            return bool(self.value["id"] == item["id"])
        return _agree(_tool(self.value), _tool(item), "name")


class Calls:
    """The tool calls of one message. Some models number none of theirs, others all alike."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def add(self, items: list[dict[str, Any]]) -> None:
        """The pieces in one chunk. Each gets the number of its call, by which clients join them."""
        here: list[_Call] = []
        for item in items:
            call = self._find(item, here)
            if call is None:
                call = self._begin(item.get("index"))
            here.append(call)
            item["index"] = call.number
            merge(call.value, item)

    def whole(self) -> list[dict[str, Any]]:
        """All calls in their order."""
        calls = sorted(self._calls, key=lambda each: each.number)
        return [{name: it for name, it in each.value.items() if name != "index"} for each in calls]

    def _find(self, item: Mapping[str, Any], here: list[_Call]) -> _Call | None:
        """The call that goes on, if none begins. What has a number belongs to the newest call of
        that number, what has only an id to that, and what has neither to the newest call."""
        said, its = item.get("index"), item.get("id")
        if said is None and its:
            return next((each for each in self._calls if each.value.get("id") == its), None)
        fit = [each for each in self._calls if said is None or each.said == said]
        if said is None:
            fit = fit[-1:] if fit and fit[-1] not in here else []
        return next((each for each in reversed(fit) if each.may_be(item)), None)

    def _begin(self, said: int | None) -> _Call:
        taken = {each.number for each in self._calls}
        number = said if said is not None and said not in taken else max(taken, default=-1) + 1
        self._calls.append(_Call(said, number, {}))
        return self._calls[-1]


def frozen(value: Any) -> Any:
    """The value with its texts whole."""
    if isinstance(value, Text):
        return _whole_text("".join(value.pieces))
    if isinstance(value, Calls):
        return frozen(value.whole())
    if isinstance(value, dict):
        return {key: frozen(each) for key, each in value.items()}
    if isinstance(value, list):
        return [frozen(each) for each in value]
    return _whole_text(value) if isinstance(value, str) else value


def _begun(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return Text(value) if grows(name) else value
    if isinstance(value, Mapping):
        begun: dict[str, Any] = {}
        merge(begun, value)
        return begun
    if isinstance(value, list):
        items: list[Any] = []
        _extend(items, value)
        return items
    return value


def _joined(name: str, held: Any, value: Any) -> Any:
    """Both, where both say something."""
    if isinstance(held, Text) and isinstance(value, str):
        held.pieces.append(value)
    elif isinstance(held, dict) and isinstance(value, Mapping):
        merge(held, value)
    elif isinstance(held, list) and isinstance(value, list):
        _extend(held, value)
    elif name in _SPOKEN:
        return _with_part(_parts(held), value)
    elif isinstance(held, (str, int, float)) and isinstance(value, (str, int, float)):
        return held if name in ONCE else value
    else:
        raise _unlike()
    return held


def _parts(held: Any) -> list[Any]:
    if isinstance(held, Text):
        return [{"type": "text", "text": held}]
    if isinstance(held, dict):
        return [held]
    if isinstance(held, list):
        return held
    raise _unlike()


def _with_part(parts: list[Any], value: Any) -> list[Any]:
    if isinstance(value, str):
        last = parts[-1]
        text = last.get("text") if isinstance(last, dict) and last.get("type") == "text" else None
        if isinstance(text, Text):
            text.pieces.append(value)
        else:
            parts.append({"type": "text", "text": Text(value)})
    elif isinstance(value, (list, Mapping)):
        _extend(parts, value if isinstance(value, list) else [value])
    else:
        raise _unlike()
    return parts


def _extend(into: list[Any], more: list[Any]) -> None:
    """Objects of one ``index`` are merged, if they are of one kind; others are put behind."""
    for item in more:
        if not isinstance(item, Mapping) or type(item.get("index")) is not int:
            into.append(item)
            continue
        held = next((each for each in reversed(into) if _is_same(each, item)), None)
        if held is None:
            held = {}
            into.append(held)
        merge(held, item)


def _is_same(held: Any, item: Mapping[str, Any]) -> bool:
    if not isinstance(held, dict) or held.get("index") != item["index"]:
        return False
    return _agree(held, item, "id") and _agree(held, item, "type")


def _agree(one: Mapping[str, Any], other: Mapping[str, Any], name: str) -> bool:
    """Whether a name is the same in both; one that is left out is any."""
    return not one.get(name) or not other.get(name) or bool(one[name] == other[name])


def _tool(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """What names the tool in a call."""
    named = call.get("function") or call.get("custom")
    return named if isinstance(named, Mapping) else {}


def _is_nothing(value: Any) -> bool:
    """Whether it is empty: nothing is lost if something takes its place."""
    return isinstance(value, (str, Text, list, dict)) and not value


def _unlike() -> AnswerInvalid:
    return AnswerInvalid("A field of the model's answer changes its type within the answer.")


def _whole_text(text: str) -> str:
    """Halves of a character that came in two chunks, as one; a half that is alone as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
