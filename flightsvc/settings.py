"""Every setting: one default, its unit in the name, all checked together at start.

A ``#:`` line over a field says what it does; the table in README.md is made from these lines.
Sources, the first wins: arguments, the environment (``FLIGHTSVC_…``, nested names joined by
``__``), the TOML file named by ``FLIGHTSVC_CONFIG``, the defaults below.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

ENV_PREFIX = "FLIGHTSVC_"

#: Stages that the service knows; ``default`` holds for every other stage of a library user.
STAGE_DEFAULTS: dict[str, dict[str, Any]] = {
    "default": {},
    "evaluation": {},
    "follow_up": {"concurrency": 20, "result_ttl_s": 180, "failure_ttl_s": 30},
    "extraction": {
        "timeout_ms": 60_000,
        "budget_ms": 60_000,
        "concurrency": 8,
        "retry_delays_ms": (),
        "result_ttl_s": 1_800,
        "session_lock": True,
    },
    "demeanor": {
        "timeout_ms": 20_000,
        "budget_ms": 20_000,
        "concurrency": 6,
        "retry_delays_ms": (),
        "result_ttl_s": 900,
        "l1_ttl_s": 0,
        "session_lock": True,
    },
    "chat": {
        "timeout_ms": 120_000,
        "budget_ms": 180_000,
        "concurrency": 200,
        "result_ttl_s": 60,
        "failure_ttl_s": 10,
        "l1_ttl_s": 0,
    },
}

Delays = Annotated[tuple[Annotated[int, Field(ge=100)], ...], Field(max_length=2)]


class StageSettings(BaseModel):
    """How one kind of AI request is called, shared and kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: longest time for one attempt, in ms; shrinks to what is left of the budget
    timeout_ms: int = Field(20_000, ge=10)
    #: longest time for the whole call, queueing and retries included, in ms
    budget_ms: int = Field(30_000, ge=10)
    #: longest time that a caller waits, in ms; 0: budget + takeover detection + 1 s
    wait_ms: int = Field(0, ge=0)
    #: calls of the model at once, a worker
    concurrency: int = Field(30, ge=1)
    #: calls that may queue for a free place, a worker
    queue: int = Field(30, ge=0)
    #: waits before the retries, in ms (at most two, each at least 100)
    retry_delays_ms: Delays = (100, 300)
    #: longest silence between two pieces of the model's answer, in ms
    between_bytes_ms: int = Field(30_000, ge=10)
    #: how long an answer replays, in s
    result_ttl_s: float = Field(600, gt=0)
    #: how long a failure is remembered, in s
    failure_ttl_s: float = Field(60, gt=0)
    #: how long an answer replays from the worker's own memory, in s; 0: off
    l1_ttl_s: float = Field(30, ge=0)
    #: whether the stage takes the session lock first
    session_lock: bool = False


class Settings(BaseModel):
    """All settings of a process, checked together.

    ``Settings(…)`` reads nothing but its arguments; :func:`load_settings` reads the environment.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: address that the service listens on
    bind: str = "127.0.0.1:8000"
    #: gunicorn worker processes
    workers: int = Field(2, ge=1)
    #: `redis://`, `rediss://` or `unix://` URL; empty: an embedded Valkey starts by itself
    redis_url: str = ""
    #: first part of every Redis name; services that share it share their flights
    namespace: str = Field("flightsvc", pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    #: `distributed`: Redis or an error; `hybrid`: without Redis each worker joins its own duplicates; `local`: never Redis
    mode: Literal["distributed", "hybrid", "local"] = "hybrid"
    #: which model is asked
    provider: Literal["simulated", "openai"] = "simulated"
    #: base of an OpenAI-compatible API, up to and with `/v1`
    openai_base_url: str = ""
    #: key for that API
    openai_api_key: SecretStr = SecretStr("")
    #: model asked for
    openai_model: str = ""
    #: longest time to connect to the model, in ms
    openai_connect_timeout_ms: int = Field(5_000, ge=1)
    #: how long the simulated model thinks, in ms
    simulated_latency_ms: int = Field(1_000, ge=0)
    #: time between two heartbeats of an owner, in ms
    heartbeat_ms: int = Field(2_000, ge=20)
    #: silence after which an owner counts as dead, in ms
    takeover_detect_ms: int = Field(6_000, ge=100)
    #: time that a stopping worker gives to running work, in s
    grace_s: float = Field(25.0, gt=1)
    #: shards of the Redis names; all workers of a namespace must agree
    flight_shards: int = Field(16, ge=1, le=1024)
    #: longest wait for Redis before a new call goes on without it, in ms
    redis_timeout_ms: int = Field(250, ge=10)
    #: connections for commands to Redis, a worker (one more reads)
    redis_connections: int = Field(4, ge=1, le=64)
    #: callers that may wait in one worker; more get 503
    max_waiters: int = Field(900, ge=1)
    #: gunicorn's open connections a worker; above max_waiters, so that /healthz always answers
    worker_connections: int = Field(1_000, ge=2)
    #: largest answer that is stored, in bytes, before compression
    max_result_bytes: int = Field(4 * 1024 * 1024, ge=1_024)
    #: how compressed answers stand in Redis
    result_encoding: Literal["base64", "raw"] = "base64"
    #: memory for the worker's own replays, in bytes
    l1_max_bytes: int = Field(32 * 1024 * 1024, ge=0)
    #: largest request body, in bytes
    max_body_bytes: int = Field(1024 * 1024, ge=1_024)
    #: folder for files that the service keeps
    data_dir: str = "data"
    #: host of the StatsD server; empty: no metrics are sent
    statsd_host: str = ""
    #: UDP port of the StatsD server
    statsd_port: int = Field(8125, ge=1, le=65_535)
    #: first part of every metric name
    statsd_prefix: str = Field("flightsvc", pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")
    #: bearer tokens, as JSON: `{"token": "tenant"}`; empty: no tokens, and loopback only
    api_tokens: dict[str, str] = Field(default_factory=dict, repr=False)
    #: names of further stages that may have settings of their own
    custom_stages: tuple[str, ...] = ()
    #: settings by stage
    stages: dict[str, StageSettings] = Field(default_factory=dict)

    def stage(self, name: str) -> StageSettings:
        """The settings of a stage; those of ``default`` where it has none of its own."""
        return self.stages.get(name) or self.stages["default"]

    def wait_ms(self, name: str) -> int:
        """A waiter's patience in ms: queueing, one model budget and takeover detection."""
        stage = self.stage(name)
        return stage.wait_ms or stage.budget_ms + self.takeover_detect_ms + 1_000

    @model_validator(mode="before")
    @classmethod
    def _fill_stages(cls, values: Any) -> Any:
        """Lay what is given for a stage over that stage's defaults."""
        if not isinstance(values, dict):
            return values
        given = values.get("stages") or {}
        if not isinstance(given, dict):
            return values  # pydantic says what is wrong with it
        default = given.get("default") or {}
        filled: dict[str, Any] = {}
        for name in {*STAGE_DEFAULTS, *given}:
            own = given.get(name) or {}
            if isinstance(own, StageSettings):
                filled[name] = own
                continue
            base = STAGE_DEFAULTS.get(name)
            if base is None and isinstance(default, dict):
                base = default
            filled[name] = {**(base or {}), **own}
        return {**values, "stages": filled}
