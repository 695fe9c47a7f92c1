"""What each script of ``lua/`` is called with, in order (a test compares the headers)."""

from __future__ import annotations

from flightsvc.store import Verb

ACQUIRE = Verb(
    "acquire",
    keys=("meta", "result", "events", "interest", "live", "fence"),
    args=(
        "id",
        "token",
        "worker",
        "tenant",
        "stage",
        "digest",
        "takeover_detect_ms",
        "deadline_ms",
        "live_ttl_ms",
        "failure_ttl_ms",
        "min_fence",
        "waited_fence",
        "replay",
        "may_own",
        "max_ownerships",
        "max_silent",
    ),
)
MARK_RUNNING = Verb("mark_running", keys=("meta",), args=("token", "fence", "live_ttl_ms"))
BEAT = Verb(
    "beat",
    keys=("live",),
    args=("live_ttl_ms",),
    each_keys=("meta", "events", "interest"),
    each_args=("id", "token", "fence"),
)
APPEND = Verb(
    "append",
    keys=("meta", "events", "interest"),
    args=("token", "fence", "live_ttl_ms", "first"),
    each_args=("chunk",),
)
FINISH = Verb(
    "finish",
    keys=("meta", "result", "events", "interest", "live"),
    args=(
        "id",
        "token",
        "fence",
        "envelope",
        "codec",
        "size",
        "checksum",
        "result_ttl_ms",
        "events_ttl_ms",
    ),
)
FAIL = Verb(
    "fail",
    keys=("meta", "events", "interest", "live"),
    args=(
        "id",
        "token",
        "fence",
        "error_type",
        "code",
        "retryable",
        "status",
        "wait_ms",
        "failure_ttl_ms",
        "events_ttl_ms",
        "fallback",
    ),
)
RELEASE = Verb(
    "release", keys=("meta", "events", "live"), args=("id", "token", "fence", "live_ttl_ms")
)
ABANDON = Verb(
    "abandon", keys=("meta", "events", "interest", "live"), args=("id", "token", "fence")
)
LEAVE = Verb("leave", keys=("interest",), args=("worker",))
DISCARD = Verb("discard", keys=("meta", "result"), args=("fence", "sha1"))
FORGET = Verb("forget", keys=("meta", "result", "events"), args=())
INSPECT = Verb("inspect", keys=("meta", "interest"), args=())
LIVE = Verb("live", keys=("live",), args=("live_ttl_ms", "most"))
SURVEY = Verb("survey", keys=(), args=(), each_keys=("meta", "interest"))
WAKE = Verb("wake", keys=("wake",), args=("ttl_ms",))
LOCK = Verb(
    "lock",
    keys=("lock", "events", "fence"),
    args=("holder", "token", "flight_fence", "lease_ms", "min_fence"),
)
RENEW = Verb(
    "renew",
    keys=(),
    args=("lease_ms",),
    each_keys=("lock", "events"),
    each_args=("token", "fence"),
)
UNLOCK = Verb("unlock", keys=("lock", "events"), args=("token", "fence", "events_ttl_ms"))

ALL = (
    ACQUIRE,
    MARK_RUNNING,
    BEAT,
    APPEND,
    FINISH,
    FAIL,
    RELEASE,
    ABANDON,
    LEAVE,
    DISCARD,
    FORGET,
    INSPECT,
    LIVE,
    SURVEY,
    WAKE,
    LOCK,
    RENEW,
    UNLOCK,
)
