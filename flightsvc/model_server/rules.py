"""The script of a model server: which calls are answered how.

A script is a JSON list of rules, or an object ``{"rules": [...], "default": {...}}``. The first
rule whose ``match`` fits a call says how it is answered; without one, ``default`` does, which by
default is a good answer at once.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic import model_validator as validator

from flightsvc.errors import SettingsError

HeaderName = Annotated[str, StringConstraints(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
HeaderValue = Annotated[str, StringConstraints(pattern=r"^[ -~]*$")]
Count = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[int, Field(ge=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Match(_Strict):
    """Which calls a rule is for; what is not given fits every call."""

    #: `chat` (OpenAI), `workflow` (XingChen) or `upload`, of a file for a workflow
    kind: Literal["chat", "workflow", "upload"] | None = None
    #: the model asked for; of a workflow its flow id
    model: str | None = None
    #: a part of the newest user message; of a workflow of `AGENT_USER_INPUT`
    last_user_contains: str | None = None
    #: a part of the request's body
    body_contains: str | None = None
    #: the bearer token; XingChen's is `KEY:SECRET`
    bearer: str | None = None
    #: whether a stream is asked for
    stream: bool | None = None
    #: of the calls that fit so far, only these; the first is 1
    nth: tuple[AtLeastOne, ...] | None = None
    #: of the calls that fit so far, only the first so many
    times: Count | None = None


class Behave(_Strict):
    """How a call is answered. Times are in ms, sizes in bytes unless named otherwise."""

    # What is said
    #: `stage`: a valid answer made from the request, for the stage that it looks like; a stage's
    #: name: one for that stage; `echo`: the newest user message; `text`: the field of that name
    answer: Literal[
        "stage", "evaluation", "follow_up", "extraction", "demeanor", "echo", "text"
    ] = "stage"
    text: str | None = None
    #: sent instead of an answer, also with status 200; a string as it is, the rest as JSON
    body: str | dict[str, Any] | list[Any] | None = None
    #: a number that says that the call failed, as XingChen has it: in the body of a plain answer,
    #: in the one frame of a workflow's stream
    code: int | None = None
    #: why the answer ended; null: the field is null
    finish_reason: str | None = "stop"
    #: what a workflow waits for, beside the `finish_reason` `interrupt`
    event_data: dict[str, Any] | None = None
    #: JSON with \\u escapes instead of UTF-8
    ascii: bool = False

    # The head
    #: from 400 on, without a body: an error body of OpenAI's form
    status: Annotated[int, Field(ge=200, le=599)] = 200
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict)
    retry_after: Count | HeaderValue | None = None

    # When
    #: before the first byte
    latency_ms: Count = 0
    #: waits until `POST /_gates/<gate>`; in a stream after `gate_after_chunks` deltas
    gate: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$")] | None = None
    gate_after_chunks: Count = 0
    #: not one byte is sent; the connection stays open
    never_answer: bool = False
    #: silence from this byte of the body on; the connection stays open
    silent_after_bytes: Count | None = None

    # How the body travels
    #: default: `length` for plain answers, `chunked` for streams; `close`: till the connection ends
    framing: Literal["length", "chunked", "close"] | None = None
    #: a Content-Length that may be a lie
    declared_length: Count | None = None
    #: size of one write, and of one HTTP chunk; cuts characters wherever it falls
    write_bytes: AtLeastOne | None = None
    #: between two writes
    write_delay_ms: Count = 0
    #: plain answers only
    encoding: Literal["identity", "gzip"] = "identity"
    #: white space behind the JSON of a plain answer
    pad_bytes: Annotated[int, Field(ge=0, le=256 * 1024 * 1024)] = 0

    # How it ends
    #: closed before a byte is sent
    cut_before_answer: bool = False
    #: ends after so many bytes of the body
    cut_after_bytes: Count | None = None
    #: ends after so many deltas of a stream
    cut_after_chunks: Count | None = None
    #: how a cut is made: `fin` closes, `reset` resets, `clean` ends the framing as if all was well
    cut: Literal["fin", "reset", "clean"] = "fin"
    #: whether the answer says that the connection is kept
    keep_alive: bool = True
    #: closes the kept connection so long after the answer, which did not say so
    close_after_ms: Count | None = None

    # Streams
    #: characters in one delta
    chunk_chars: AtLeastOne = 8
    #: before each delta, and before what follows the last
    chunk_delay_ms: Count = 0
    #: further waits before each delta, one after the other and from the first again
    gaps_ms: tuple[Count, ...] = ()
    #: events sent instead of an answer's: objects as JSON, strings as they are; `[DONE]` still
    #: follows, and deltas are counted from the first of them
    events: tuple[dict[str, Any] | str, ...] | None = None
    #: an event sent instead of what follows `cut_after_chunks` (default: all) deltas
    stream_error: dict[str, Any] | None = None
    #: whether `[DONE]` ends it
    done: bool = True
    #: the same of a workflow's stream, which has none
    workflow_done: bool = False
    line_end: Literal["lf", "crlf", "cr"] = "lf"
    #: whether a space follows `data:`
    data_space: bool = True
    #: comment lines before each event
    comments: Count = 0

    @validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.text is not None) != (self.answer == "text"):
            raise ValueError('text goes with answer "text", and needs it')
        if self.body is not None and self.text is not None:
            raise ValueError("body and text exclude each other")
        if self.body is not None and self.events is not None:
            raise ValueError("body and events exclude each other")
        if self.body is not None and self.code is not None:
            raise ValueError("body and code exclude each other")
        if self.declared_length is not None and self.framing not in (None, "length"):
            raise ValueError('declared_length needs framing "length"')
        return self


class Rule(_Strict):
    """One rule; its name is the key under which the statistics count its calls."""

    name: str | None = None
    match: Match = Match()
    behave: Behave = Behave()


class Script(_Strict):
    """All rules, the first that fits wins."""

    rules: tuple[Rule, ...] = ()
    default: Behave = Behave()


def read_script(data: bytes | str) -> Script:
    """A script from its JSON text.

    :raises SettingsError: it is no JSON or does not fit; names each field that does not.
    """
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    if text.lstrip().startswith("["):
        text = f'{{"rules": {text}}}'
    try:
        return Script.model_validate_json(text)
    except ValidationError as error:
        reasons = (
            f"{'.'.join(map(str, each['loc'])) or 'the script'}: {each['msg']}"
            for each in error.errors(include_url=False, include_input=False)
        )
        raise SettingsError(
            "The model server's script: " + "; ".join(reasons), code="SCRIPT_INVALID"
        ) from None
