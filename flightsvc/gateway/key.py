"""Which chats are the same question.

The whole body counts, in its canonical form (RFC 8785), but for the fields that cannot change the
answer. So 1 and 1.0 are equal, the order of fields and white space do not matter, `true` is not 1,
a field that nobody here knows counts, and a field left out is not its default. The tenant is a part
of the key that no body can imitate (see :mod:`flightsvc.flight.key`).
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any

import rfc8785

from flightsvc.flight.key import FlightKey
from flightsvc.gateway.chat import STAGE, Chat, InvalidChat, Sharing

#: Part of every key: another reading of bodies is another question.
VERSION = "gateway/1"


def chat_key(
    chat: Chat, sharing: Sharing, *, tenant: str, provider: str, ignored: Collection[str]
) -> FlightKey:
    """The flight key of a chat.

    :param tenant: who asks; tenants share nothing.
    :param provider: name of the provider that would be asked.
    :param ignored: names of fields of the body that do not count.
    :raises InvalidChat: the body has no canonical form.
    """
    variant = f"{VERSION} {provider}"
    digest = body_digest(chat.body, ignored)
    if sharing.bypass:
        return FlightKey(STAGE, "alone", uuid.uuid4().bytes, tenant=tenant, variant=variant)
    if sharing.name:
        name = sharing.name.encode()  # bytes: compared exactly
        return FlightKey(
            STAGE, "named", name, tenant=tenant, variant=variant, digest=digest.hex()
        )
    return FlightKey(STAGE, "body", digest, tenant=tenant, variant=variant)


def body_digest(body: Mapping[str, Any], ignored: Collection[str]) -> bytes:
    """SHA-256 of what counts of a body.

    :raises InvalidChat: it has no canonical form.
    """
    counting = {name: value for name, value in body.items() if name not in ignored}
    rest = {name: value for name, value in body.items() if name in ignored}
    canonical(rest)  # what does not count must still be fit to be sent
    return sha256(canonical(counting)).digest()


def canonical(value: Any) -> bytes:
    """The canonical form of a JSON value.

    RFC 8785 knows the numbers of IEEE 754 only. An integer that is none of them is told from all
    others by its digits, and from a text of the same digits by a list of such places.

    :raises InvalidChat: half of a surrogate pair, a number beyond all bounds, or too much nesting.
    """
    try:
        return b"0" + rfc8785.dumps(value)
    except rfc8785.IntegerDomainError:
        places: list[Any] = []
        spelled = _spelled(value, places, ())
        return b"1" + canonical([spelled, places]) if places else canonical(spelled)
    except RecursionError:
        raise InvalidChat("The body is nested too deeply.", code="JSON_INVALID") from None
    except ValueError:  # no "from": the original error may hold the text
        raise InvalidChat(
            "The body holds half of a surrogate pair, or a number beyond all bounds.",
            code="JSON_INVALID",
        ) from None


def _spelled(value: Any, places: list[Any], at: tuple[str | int, ...]) -> Any:
    """The value with its long integers as floats, or as texts whose places are noted."""
    if isinstance(value, dict):
        return {name: _spelled(each, places, (*at, name)) for name, each in value.items()}
    if isinstance(value, list):
        return [_spelled(each, places, (*at, index)) for index, each in enumerate(value)]
    if type(value) is not int or abs(value) < 2**53:
        return value
    try:
        if float(value) == value:
            return float(value)
    except OverflowError:
        pass
    places.append(list(at))
    return str(value)
