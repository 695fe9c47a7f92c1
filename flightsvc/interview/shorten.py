"""Cutting a text that is too long for a model."""

from __future__ import annotations

from collections.abc import Mapping

#: characters of an English token; of a Chinese one there is about one
ASCII_A_TOKEN = 4


def tokens(text: str) -> int:
    """About how many tokens a text has; rather too many than too few."""
    plain = sum(map(str.isascii, text))
    return len(text) - plain + -(-plain // ASCII_A_TOKEN)


def shorten(text: str, most: int, marker: str) -> str:
    """The text, or its beginning and a marker.

    :param most: longest text, in tokens as :func:`tokens` counts; the marker comes on top.
    """
    if tokens(text) <= most:
        return text
    quarters, end = most * ASCII_A_TOKEN, 0
    for character in text:
        quarters -= 1 if character.isascii() else ASCII_A_TOKEN
        if quarters < 0:
            break
        end += 1
    return f"{text[:end].rstrip()} {marker}".lstrip()


def share_out(
    given: Mapping[str, str], shares: Mapping[str, int], most: int, marker: str
) -> dict[str, str]:
    """Texts cut to about ``most`` tokens all together.

    :param given: the texts by name; the first ones are served first.
    :param shares: the most that one text may have of it, in tokens.
    """
    texts, left = {}, most
    for name, text in given.items():
        allowed = min(left, shares[name])
        texts[name] = shorten(text, allowed, marker)
        left -= min(allowed, tokens(text))
    return texts
