"""What all models' answers have in common: a text, a reason why it ended, and token counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flightsvc.errors import AnswerCut, AnswerInvalid

#: What models say when an answer is whole; every other reason means that it is not.
WHOLE = {"stop", "eos", "eos_token", "end_turn", "stop_sequence"}
TRUNCATED = {"length", "max_tokens", "model_length"}
FILTERED = {"content_filter", "sensitive", "safety"}


def first_choice(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first choice of an answer.

    :raises AnswerInvalid: there is none.
    """
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise AnswerInvalid("The model's answer has no choices.")
    choice: Mapping[str, Any] = choices[0]
    return choice


def check_end(reason: object, *, refusal: object = None) -> None:
    """Check that an answer ended as it should.

    :param reason: its ``finish_reason``.
    :param refusal: what the model said instead of an answer.
    :raises AnswerInvalid: it was withheld, or cut at its longest length.
    :raises AnswerCut: the model did not say that it finished.
    """
    reason = reason.lower() if isinstance(reason, str) else ""
    if reason in FILTERED or refusal:
        raise _final("The model withheld its answer.", "AI_CONTENT_FILTERED")
    if reason in TRUNCATED:
        raise _final("The model's answer was cut at its longest length.", "AI_ANSWER_TRUNCATED")
    if reason not in WHOLE:
        raise AnswerCut("The model did not say that it finished.")


def checked_text(text: object) -> str:
    """The text of an answer.

    :raises AnswerInvalid: it is blank, or no text.
    """
    if text is None or (isinstance(text, str) and not text.strip()):
        raise AnswerInvalid("The model's answer is empty.", code="AI_ANSWER_EMPTY")
    if not isinstance(text, str) or not _is_unicode(text):
        raise AnswerInvalid("The model's answer is not text.")
    return text


def usage(given: object) -> dict[str, int] | None:
    """The token counts of an answer, if it has them."""
    if not isinstance(given, Mapping):
        return None
    kinds = ("prompt_tokens", "completion_tokens", "total_tokens")
    return {kind: given[kind] for kind in kinds if type(given.get(kind)) is int} or None


def _final(message: str, code: str) -> AnswerInvalid:
    """An invalid answer that the same question would only get again."""
    error = AnswerInvalid(message, code=code)
    error.retryable = False
    return error


def _is_unicode(text: str) -> bool:
    """Whether the text can be written as UTF-8; JSON can smuggle in half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
