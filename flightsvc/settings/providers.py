"""What must hold of the settings of the models; sentences as in ``checks.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from flightsvc.settings.model import Settings

#: what an HTTP header may hold, without blanks
HEADER_VALUE = re.compile(r"[!-~]*")


def model_faults(settings: Settings) -> Iterator[str]:
    """A sentence for each fault in what says which model is asked, and how."""
    yield from _openai(settings)
    yield from _xingchen(settings)


def _openai(settings: Settings) -> Iterator[str]:
    if settings.provider == "openai":
        for name, example in (("openai_base_url", "https://host/v1"), ("openai_model", "a model")):
            if not getattr(settings, name).strip():
                yield (
                    f"<provider> is openai, but <{name}> is empty: set it to {example}, or "
                    f"<provider> to simulated."
                )
    if settings.provider == "simulated" and settings.openai_base_url:
        yield _unasked("openai", "openai_base_url")
    if not HEADER_VALUE.fullmatch(settings.openai_api_key.get_secret_value()):
        yield "<openai_api_key> holds characters that no HTTP header may hold: write it anew."
    if settings.openai_base_url:
        yield from _base_url(
            "openai_base_url", settings.openai_base_url, "https://host/v1", "<openai_api_key>"
        )


def _xingchen(settings: Settings) -> Iterator[str]:
    key, secret = settings.xingchen_api_key, settings.xingchen_api_secret
    if settings.provider == "xingchen":
        if not settings.xingchen_base_url.strip():
            yield "<xingchen_base_url> is empty: remove it for iFlytek's own, or set it."
        for name, value in (("xingchen_api_key", key), ("xingchen_api_secret", secret)):
            if not value.get_secret_value().strip():
                yield (
                    f"<provider> is xingchen, but <{name}> is empty: set it to the one of your "
                    f"app, or <provider> to simulated."
                )
        if not any(stage.flow_id for stage in settings.stages.values()):
            yield (
                "<provider> is xingchen, but no stage has a workflow: set "
                "<stages.evaluation.flow_id>, and that of each stage that you use."
            )
    if settings.provider == "simulated" and key.get_secret_value():
        yield _unasked("xingchen", "xingchen_api_key")
    for name, value in (("xingchen_api_key", key), ("xingchen_api_secret", secret)):
        if not HEADER_VALUE.fullmatch(value.get_secret_value()):
            yield f"<{name}> holds characters that no HTTP header may hold: write it anew."
    if ":" in key.get_secret_value():
        yield "<xingchen_api_key> holds a colon: what follows it goes into <xingchen_api_secret>."
    if settings.xingchen_base_url.strip():
        yield from _base_url(
            "xingchen_base_url", settings.xingchen_base_url, "https://host", "<xingchen_api_key>"
        )


def _unasked(provider: str, name: str) -> str:
    return (
        f"<{name}> is set, but <provider> is simulated, so no model would be asked: set <provider> "
        f"to {provider}, or remove <{name}>."
    )


def _base_url(name: str, url: str, example: str, key: str) -> Iterator[str]:
    """What is wrong with an address that calls are made to."""
    try:
        parts = urlsplit(url)
        is_fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_fine = False
    if not is_fine or re.search(r"\s", url):
        yield f"<{name}> must be an http:// or https:// URL, such as {example}."
    elif "@" in parts.netloc:
        yield f"<{name}> must not name a user: the key goes into {key}."
    elif parts.query or parts.fragment:
        yield f"<{name}> must end with its path, such as /v1: remove what follows it."
