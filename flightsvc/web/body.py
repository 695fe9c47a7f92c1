"""Reading a JSON body: bounded, unambiguous, validated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar
from urllib.parse import parse_qsl

import gevent
from flask import Request
from pydantic import BaseModel, ValidationError
from werkzeug.exceptions import UnsupportedMediaType

from flightsvc.errors import BodyTooSlow, InvalidInput, PayloadTooLarge, RequestError
from flightsvc.settings import Settings

Body = TypeVar("Body", bound=BaseModel)

#: Media type of a plain form, and the fields that one may have.
FIELDS, MAX_FIELDS = "application/x-www-form-urlencoded", 20
#: Faults that one answer names.
MAX_FAULTS = 5
#: Longest name of an unknown field that is repeated to its sender, in characters.
MAX_NAME = 64


def read_json(request: Request, schema: type[Body], settings: Settings) -> Body:
    """The body of a request as ``schema`` says.

    :param settings: how large it may be, and in what time it must have come.
    :raises BodyTooSlow: it did not come in that time.
    :raises UnsupportedMediaType: it is not JSON in UTF-8, or compressed.
    :raises PayloadTooLarge: it is larger than that, also if it did not say so.
    :raises RequestError: it is not JSON, or an object in it has one name twice.
    :raises InvalidInput: it does not fit; the message names the fields.
    """
    found = read_any_json(request, settings.max_body_bytes, settings.body_timeout_ms / 1000)
    try:
        return schema.model_validate(found)
    except ValidationError as error:
        raise InvalidInput(_faults(error)) from None


def read_any_json(request: Request, limit: int, timeout_s: float) -> Any:
    """The body of a request, whatever JSON it is.

    :param limit: most bytes.
    :param timeout_s: longest time in which it must have come, in s.
    :raises RequestError: and others, as :func:`read_json`.
    """
    _check_type(request)
    return parse(_in_time(request, limit, timeout_s))


def check_fields(form: Mapping[str, str], schema: type[Body]) -> Body:
    """The fields of a form as ``schema`` says; an empty field is one that was not filled in.

    :raises InvalidInput: they do not fit; the message names them.
    """
    try:
        return schema.model_validate({name: said for name, said in form.items() if said})
    except ValidationError as error:
        raise InvalidInput(_faults(error)) from None


def read_fields(request: Request, settings: Settings) -> dict[str, str]:
    """The fields of a plain form, as browsers send one without files.

    :raises BodyTooSlow, PayloadTooLarge, RequestError: as :func:`read_json`.
    :raises UnsupportedMediaType: it is no such form.
    """
    if request.mimetype != FIELDS:
        raise UnsupportedMediaType(f"Send the form as `Content-Type: {FIELDS}`.")
    if "form" in vars(request):  # a hook of the app that mounts us has read it
        return request.form.to_dict()
    raw = _in_time(request, settings.max_body_bytes, settings.body_timeout_ms / 1000)
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise RequestError("The form cannot be read.") from None
    return dict(pairs)


def _in_time(request: Request, limit: int, timeout_s: float) -> bytes:
    """A client that sends a byte now and then must not hold a connection for ever."""
    timer = gevent.Timeout(timeout_s)
    try:
        with timer:
            return read_bytes(request, limit)
    except gevent.Timeout as expired:
        if expired is not timer:
            raise
        raise BodyTooSlow() from None


def read_bytes(request: Request, limit: int) -> bytes:
    """The raw body.

    :raises PayloadTooLarge: see :func:`read_json`.
    :raises RequestError: it was cut, or its chunks are malformed.
    """
    environ = request.environ
    theirs = request.max_content_length  # of the app that mounts us
    limit = limit if theirs is None else min(limit, theirs)
    said = environ.get("CONTENT_LENGTH") or ""
    length = int(said) if said.isdecimal() else None
    if length is not None and length > limit:
        raise _too_large(limit)
    theirs_already = already_read(request)
    if theirs_already is not None:
        if len(theirs_already) > limit:
            raise _too_large(limit)
        return theirs_already
    if "wsgi.input_terminated" in environ:  # reads to the body's own end, and no further
        size = limit + 1
    elif length is None:
        return b""
    else:
        size = length
    try:
        data: bytes = environ["wsgi.input"].read(size)
    except Exception:  # a bad chunk, a connection that is gone: each server has its own classes
        raise RequestError("The body ends early, or its chunks are malformed.") from None
    if len(data) > limit:
        raise _too_large(limit)
    return data


def already_read(request: Request) -> bytes | None:
    """The body, where a hook of the app that mounts us has read it (``request.get_data()``)."""
    found: bytes | None = getattr(request, "_cached_data", None)  # asking for it would read it
    return found


def parse(raw: bytes) -> Any:
    """JSON as RFC 8259 has it: UTF-8, no NaN, and no name twice (readers disagree on those)."""
    try:
        return _DECODER.decode(raw.decode("utf-8"))
    except _DuplicateName:
        raise RequestError(
            "An object in the body has one name twice; send each field once.",
            code="JSON_DUPLICATE_NAME",
        ) from None
    except RecursionError:
        raise RequestError("The body is nested too deeply.", code="JSON_INVALID") from None
    except (json.JSONDecodeError, UnicodeDecodeError, _NotANumber):
        raise RequestError("The body is not JSON in UTF-8.", code="JSON_INVALID") from None
    except ValueError:  # Python's bound, against the time that longer ones take
        told = "A number in the body has too many digits."
        raise RequestError(told, code="JSON_INVALID") from None


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The body may have at most {limit} bytes.")


def _check_type(request: Request) -> None:
    if request.environ.get("HTTP_CONTENT_ENCODING", "identity").strip().lower() != "identity":
        raise UnsupportedMediaType("Send the body uncompressed.")
    if request.environ.get("CONTENT_TYPE") == "application/json":  # as nearly everybody sends it
        return
    mimetype = request.mimetype
    is_json = mimetype == "application/json" or (
        mimetype.startswith("application/") and mimetype.endswith("+json")
    )
    if not is_json or request.mimetype_params.get("charset", "utf-8").lower() != "utf-8":
        raise UnsupportedMediaType("Send the body as `Content-Type: application/json` in UTF-8.")


#: pydantic's words that name what is ours alone
_WORDING = {"model_type": "must be an object", "model_attributes_type": "must be an object"}


class _DuplicateName(ValueError):
    pass


class _NotANumber(ValueError):
    pass


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _DuplicateName
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise _NotANumber(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant)


def _faults(error: ValidationError) -> str:
    """Fields and what is wrong with them, without their content."""
    faults: dict[str, list[str]] = {}
    for detail in error.errors(include_url=False, include_input=False, include_context=False):
        name = str(detail["loc"][0])[:MAX_NAME] if detail["loc"] else "the body"
        says = _WORDING.get(detail["type"]) or detail["msg"].removeprefix("Value error, ")
        if says.startswith(("String ", "Value ")):  # a text, before or after it was looked at
            says = says.replace(" after validation", "").replace("item", "character")
        faults.setdefault(name, []).append(says[:1].lower() + says[1:])
    said = [f"{name}: {' / '.join(says)}" for name, says in list(faults.items())[:MAX_FAULTS]]
    return "; ".join(said) + ("." if len(faults) <= MAX_FAULTS else "; and more.")
