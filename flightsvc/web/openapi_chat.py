"""What the OpenAI door's routes say of themselves."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from flightsvc.errors import FlightInterrupted, KeyConflict
from flightsvc.gateway.aftermath import CLIENTS_FAULTS
from flightsvc.gateway.chat import InvalidChat
from flightsvc.gateway.service import NoDoor
from flightsvc.web.openai_errors import kind
from flightsvc.web.openapi_shapes import FlightId, Shown
from flightsvc.web.openapi_terms import (
    TENANT,
    Answer,
    Faults,
    JsonBody,
    Operation,
    Parameter,
    Told,
    json_of,
)
from flightsvc.web.openapi_words import LANGUAGE

#: headers of an answer in the words of the model's service
_MAYBE = ("Flight-Id", "Flight-Fence", "Content-Language", "Retry-After", "x-should-retry")
MODEL_NOT_FOUND = Told(404, "MODEL_NOT_FOUND")
#: a client of OpenAI's API knows it by this status
RATE_LIMITED = Told(429, "PROVIDER_RATE_LIMITED")


class Open(BaseModel):
    """May have any other field."""

    model_config = ConfigDict(extra="allow")


class StreamOptions(Open):
    """How chunks are wanted."""

    #: whether the last chunk is one with the token counts
    include_usage: bool | None = None


class ChatBody(Open):
    """A chat as OpenAI's clients write it. Other fields are passed on as they are."""

    #: the model to ask
    model: Annotated[str, Field(min_length=1)]
    #: what was said so far
    messages: Annotated[list[Any], Field(min_length=1)]
    #: whether the answer is wanted in chunks
    stream: bool | None = None
    stream_options: StreamOptions | None = None


class CompletionChoice(Open):
    """One of the answers that were asked for."""

    #: what the model says; as OpenAI has it
    message: dict[str, Any]
    #: why it ended
    finish_reason: str


class Completion(Open):
    """A whole answer, as the model gave it."""

    choices: Annotated[list[CompletionChoice], Field(min_length=1)]
    #: the token counts
    usage: Any = None


class Chunk(Open):
    """A part of an answer, as the model gave it."""

    #: what is new of each answer, in `delta`; none where it is about token counts
    choices: list[dict[str, Any]]
    #: the token counts, for who asked for them: in the last chunk; null in those before
    usage: Any = None


class ModelListed(Open):
    """A model that can be asked, as its service has it."""

    id: str


class ModelList(Shown):
    """The models that can be asked."""

    object: Literal["list"]
    data: list[ModelListed]


class OpenAIFault(Shown):
    """What went wrong."""

    #: one sentence for whoever programs the client
    message: str
    #: its kind, by the status
    type: str
    #: the field that is at fault, if one is
    param: str | None
    #: its kind, for programs: a code of ours in lower case, or one of the model's service
    code: str
    #: whether the same request may succeed later
    retryable: bool
    #: the flight that failed, if one did
    flight_id: FlightId = ""


class OpenAIError(Shown):
    """An error as OpenAI's clients know it."""

    error: OpenAIFault


def _known(status: int, codes: list[str]) -> dict[str, Any]:
    told = {"type": {"const": kind(status)}, "code": {"enum": [code.lower() for code in codes]}}
    return {"error": {"properties": told}}


FAULTS = Faults("application/json", OpenAIError, _known, str.lower, ("x-should-retry",))

_SHARING = (
    Parameter(
        "Flight-Key",
        "header",
        "The question's name: printable ASCII without spaces. The same name with another body is "
        "422 `key_conflict`. Without it the body is the name.",
        {"type": "string", "pattern": "^[!-~]{1,256}$"},
    ),
    Parameter(
        "Flight-Mode",
        "header",
        "`bypass`: a call of its own, which neither joins nor is joined, neither replays nor is "
        "replayed.",
        {"type": "string", "enum": ["bypass"]},
    ),
    Parameter(
        "Flight-Replay",
        "header",
        "`none`: an answer from before is not wanted; a call that is running is joined.",
        {"type": "string", "enum": ["none"]},
    ),
)

CHAT = Operation(
    summary="Answer a chat",
    says=(
        "Equal chats of a tenant are answered by one call: `Flight-Role` says how. A streamed "
        "answer is a stream of events without names, the last of which is `[DONE]`. Where an "
        "answer fails after its head was sent, the last event is the error, without `[DONE]`; "
        "`flight_interrupted` comes only so."
    ),
    tag="Chats",
    who=TENANT,
    parameters=(*_SHARING, LANGUAGE),
    body=JsonBody(
        ChatBody,
        {
            "model": "some-model",
            "messages": [{"role": "user", "content": "What does a database index cost?"}],
        },
        wrong=InvalidChat,
    ),
    answers=(
        Answer(
            200,
            "The answer, whole or in chunks",
            json_of(Completion),
            headers=("Flight-Id",),
            maybe=("Flight-Role", "Flight-Fence", "Flight-Simulated"),
            chunks=(Chunk, OpenAIError, "[DONE]"),
        ),
        *(
            Answer(
                status,
                "What the model's service says of the request, in its own words, to whoever "
                "waited for them.",
                json_of(OpenAIError),
                maybe=_MAYBE,
            )
            for status in sorted(CLIENTS_FAULTS)
        ),
        Answer(429, "The model's service takes no more.", json_of(OpenAIError), maybe=_MAYBE),
    ),
    problems=(KeyConflict, NoDoor, MODEL_NOT_FOUND, RATE_LIMITED, FlightInterrupted),
    asks="chat",
    faults=FAULTS,
)
MODELS = Operation(
    summary="The models that can be asked",
    says="Those of FLIGHTSVC_GATEWAY_MODELS, or what the model's service lists.",
    tag="Chats",
    who=TENANT,
    parameters=(LANGUAGE,),
    answers=(Answer(200, "All of them", json_of(ModelList)),),
    problems=(NoDoor,),
    asks="service",
    faults=FAULTS,
)
