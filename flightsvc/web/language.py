"""In which language a client is told what happened."""

from __future__ import annotations

from flask import request

from flightsvc.interview.templates import LANGUAGES


def language() -> str:
    """The one of ours that the current request likes best (``Accept-Language``)."""
    return request.accept_languages.best_match(LANGUAGES, default=LANGUAGES[0])
