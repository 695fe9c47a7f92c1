"""Settings that contradict each other, or cannot work: each check names the settings and the fix.

``<name>`` in a sentence stands for a setting; it is spelled as the user wrote it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from flightsvc.settings.alerting import alert_faults
from flightsvc.settings.database_url import database_url_fault
from flightsvc.settings.listen import FORMS, parse_listen
from flightsvc.settings.providers import model_faults
from flightsvc.settings.redis_url import redis_url_fault
from flightsvc.settings.stage import STAGE_DEFAULTS, StageSettings
from flightsvc.settings.wording import nearest

if TYPE_CHECKING:
    from flightsvc.settings.model import Settings

#: longest name of a tenant, in bytes of UTF-8: what the database takes in a key
MAX_TENANT = 300


def contradictions(settings: Settings) -> Iterator[str]:
    """A sentence for everything in these settings that cannot work."""
    yield from _times(settings)
    yield from _stages(settings)
    yield from _redis(settings)
    yield from model_faults(settings)
    yield from _listening(settings)
    yield from _tokens(settings)
    yield from _statsd(settings)
    yield from _files(settings)
    yield from _database(settings)
    yield from alert_faults(settings)


def check_tokens(value: Any) -> Any:
    """Refuse tokens that no client can send; never names one.

    :raises ValueError: a token or tenant is empty or not printable.
    """
    if not isinstance(value, Mapping):
        raise ValueError('must be an object of tokens and tenants, such as {"token": "tenant"}')
    for number, (token, tenant) in enumerate(value.items(), 1):
        if not _is_text(token) or " " in token:
            raise ValueError(f"must hold printable tokens without spaces: token {number} is not so")
        if not _is_text(tenant):
            raise ValueError(f"must name a tenant for each token: that of token {number} is none")
        if is_too_long(tenant):
            raise ValueError(
                f"must name tenants of at most {MAX_TENANT} bytes: that of token {number} is longer"
            )
    return value


def is_too_long(tenant: str) -> bool:
    """Whether no row could be kept under a tenant's name."""
    return len(tenant.encode("utf-8", "surrogatepass")) > MAX_TENANT


def _is_text(value: Any) -> bool:
    """Not blank, and without what cannot be sent or stored: controls, halves of characters."""
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _times(settings: Settings) -> Iterator[str]:
    if settings.takeover_detect_ms < 2 * settings.heartbeat_ms:
        yield (
            f"<takeover_detect_ms> ({settings.takeover_detect_ms}) is less than twice "
            f"<heartbeat_ms> ({settings.heartbeat_ms}), so one late heartbeat would cost an owner "
            f"its flight: set <takeover_detect_ms> to at least {2 * settings.heartbeat_ms} or "
            f"<heartbeat_ms> to at most {settings.takeover_detect_ms // 2}."
        )
    if settings.max_waiters >= settings.worker_connections:
        yield (
            f"<max_waiters> ({settings.max_waiters}) is not below <worker_connections> "
            f"({settings.worker_connections}), so waiting callers could keep /healthz from "
            f"answering: set <worker_connections> to at least {settings.max_waiters + 1} or lower "
            f"<max_waiters>."
        )


def _stages(settings: Settings) -> Iterator[str]:
    known = [*STAGE_DEFAULTS, *settings.custom_stages]
    for name, stage in settings.stages.items():
        if name not in known:
            near = nearest(name, known)
            meant = f" (did you mean {near}?)" if near else ""
            yield (
                f"<stages> has settings for {name!r}, which is no stage{meant}: correct the "
                f"name, or add it to <custom_stages>."
            )
            continue
        yield from _stage(f"stages.{name}", stage, settings.takeover_detect_ms)


def _stage(at: str, stage: StageSettings, takeover_ms: int) -> Iterator[str]:
    timeout, budget, delays = stage.timeout_ms, stage.budget_ms, sum(stage.retry_delays_ms)
    if budget < timeout:
        yield (
            f"<{at}.budget_ms> ({budget}) is less than <{at}.timeout_ms> ({timeout}), so no "
            f"attempt could use its time: raise the budget to {timeout} or lower the timeout."
        )
    elif timeout + delays > budget:
        yield (
            f"<{at}.timeout_ms> ({timeout}) and <{at}.retry_delays_ms> (together {delays}) are "
            f"more than <{at}.budget_ms> ({budget}), so a retry could never run: raise the budget "
            f"to {timeout + delays}, or lower the timeout, or set the delays to []."
        )
    least = stage.span_ms + takeover_ms
    if stage.wait_ms and stage.wait_ms < least:
        lock = f", <{at}.session_lock_wait_ms>" if stage.session_lock else ""
        yield (
            f"<{at}.wait_ms> ({stage.wait_ms}) is less than <{at}.budget_ms> ({budget}){lock} and "
            f"<takeover_detect_ms> ({takeover_ms}) together, so callers would leave before their "
            f"answer: set it to at least {least}, or to 0 to have it worked out."
        )
    if stage.l1_ttl_s > stage.result_ttl_s:
        yield (
            f"<{at}.l1_ttl_s> ({stage.l1_ttl_s:g}) is more than <{at}.result_ttl_s> "
            f"({stage.result_ttl_s:g}), so a worker would replay what Redis has forgotten: lower "
            f"the first or raise the second."
        )


def _redis(settings: Settings) -> Iterator[str]:
    if not settings.redis_url:
        return
    if settings.mode == "local":
        yield (
            "<mode> is local, which never uses Redis, but <redis_url> is set: remove it, or set "
            "<mode> to hybrid or distributed."
        )
    fault = redis_url_fault(settings.redis_url)
    if fault:
        yield f"<redis_url> {fault}"


def _listening(settings: Settings) -> Iterator[str]:
    try:
        addresses = parse_listen(settings.bind)
    except ValueError as error:
        yield f"<bind> cannot be read: {error}. Write {FORMS}, such as 127.0.0.1:8000."
        return
    if not settings.api_tokens and not all(address.is_local for address in addresses):
        yield (
            f"<bind> ({settings.bind}) can be reached from other machines, but <api_tokens> is "
            f"empty, so anyone could use the model: set <api_tokens>, or <bind> to 127.0.0.1."
        )


def _tokens(settings: Settings) -> Iterator[str]:
    both = settings.api_tokens.keys() & settings.operator_tokens.keys()
    if both:
        which = f"{len(both)} tokens stand" if len(both) > 1 else "A token stands"
        yield (
            f"{which} both in <api_tokens> and in <operator_tokens>, so a tenant could pause "
            f"modules for all: give operators tokens of their own."
        )


def _statsd(settings: Settings) -> Iterator[str]:
    if settings.statsd_host.count(":") == 1 or "/" in settings.statsd_host:
        yield "<statsd_host> must be a host alone: put the port into <statsd_port>."


def _database(settings: Settings) -> Iterator[str]:
    fault = database_url_fault(settings.database_url) if settings.database_url else ""
    if fault:
        yield f"<database_url> {fault}"


#: memory for reading a file: what the libraries take, and a pixel's share, both in bytes
_READER, _PER_PIXEL = 128 * 1024 * 1024, 10


def _files(settings: Settings) -> Iterator[str]:
    needed = math.ceil((_READER + _PER_PIXEL * settings.max_pixels) / 1024 / 1024)
    if settings.file_parse_memory_mb < needed:
        yield (
            f"<file_parse_memory_mb> ({settings.file_parse_memory_mb}) is too little for a picture "
            f"of <max_pixels> ({settings.max_pixels}): set it to at least {needed}, or allow fewer "
            f"pixels."
        )
