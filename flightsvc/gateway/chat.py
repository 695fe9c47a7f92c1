"""One chat as a client asks for it: what is read of its body, and what it says of sharing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flightsvc.errors import RequestError

#: The stage of all chats, in settings, keys and metrics.
STAGE = "chat"


class InvalidChat(RequestError):
    """A field of the chat is missing or wrong.

    :param param: the field.
    """

    default_code = "INPUT_INVALID"

    def __init__(self, message: str, param: str | None = None, *, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.param = param


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Chat:
    """A chat to be answered.

    :param body: the JSON object as it came; all but what is named here is passed on unread.
    :param model: the model asked for.
    :param stream: whether the answer is wanted in chunks.
    :param include_usage: whether the token counts are wanted at the end of the chunks.
    """

    body: Mapping[str, Any] = field(repr=False)
    model: str
    stream: bool
    include_usage: bool

    @classmethod
    def read(cls, document: object) -> Chat:
        """From the parsed body.

        :raises InvalidChat: it cannot be a chat; everything else is for the model to say.
        """
        if not isinstance(document, Mapping):
            raise InvalidChat("The body must be a JSON object.")
        model = document.get("model")
        if not isinstance(model, str) or not model:
            raise InvalidChat("model must name the model to ask.", "model")
        if not isinstance(document.get("messages"), list) or not document["messages"]:
            raise InvalidChat("messages must be a list of at least one message.", "messages")
        stream = _flag(document, "stream", "stream")
        options = document.get("stream_options")
        if options is not None and not isinstance(options, Mapping):
            raise InvalidChat("stream_options must be an object or null.", "stream_options")
        usage = _flag(options or {}, "include_usage", "stream_options.include_usage")
        return cls(document, model, stream, stream and usage)


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a caller wants to share.

    :param name: the caller's own name for its question; empty: the body is the name.
    :param bypass: neither joins nor is joined, neither replays nor is replayed.
    :param replay: whether an answer from before is welcome.
    """

    name: str = ""
    bypass: bool = False
    replay: bool = True


def _flag(fields: Mapping[str, Any], name: str, param: str) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidChat(f"{param} must be true or false.", param)
    return bool(value)
