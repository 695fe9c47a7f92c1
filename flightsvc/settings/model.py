"""``Settings``: all settings of a process.

A ``#:`` line over a field says what it does; the table in README.md is made from these lines.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)

from flightsvc.settings.checks import check_tokens, contradictions
from flightsvc.settings.frozen import FrozenDict
from flightsvc.settings.stage import StageSettings, filled
from flightsvc.settings.wording import Contradictions, explain, plain, refusal

StageName = Annotated[str, Field(pattern=r"^[a-z0-9]+(_[a-z0-9]+)*$", max_length=40)]
Tokens = Annotated[dict[str, str], BeforeValidator(check_tokens), AfterValidator(FrozenDict)]
Stages = Annotated[dict[str, StageSettings], AfterValidator(FrozenDict)]


class Settings(BaseModel):
    """All settings of a process, checked together.

    ``Settings(…)`` reads nothing but its arguments; :func:`load_settings` reads the environment.

    :raises pydantic.ValidationError: a value is wrong, or two contradict each other;
        :meth:`checked` raises :class:`SettingsError` instead.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True
    )

    #: address that the service listens on: `host:port`, `[v6]:port` or `unix:/path`; several
    #: joined by commas
    bind: str = "127.0.0.1:8000"
    #: gunicorn worker processes
    workers: int = Field(default=2, ge=1, le=256)
    #: `redis://` (`rediss://` with TLS), `unix://`, `redis+sentinel://` or `redis+cluster://` URL
    #: (docs/redis.md); empty: an embedded Valkey starts by itself
    redis_url: str = Field(default="", repr=False)
    #: first part of every Redis name; services that share it share their flights
    namespace: str = Field(default="flightsvc", pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    #: `distributed`: Redis or an error; `hybrid`: without Redis each worker joins its own
    #: duplicates; `local`: never Redis
    mode: Literal["distributed", "hybrid", "local"] = "hybrid"
    #: which model is asked
    provider: Literal["simulated", "openai", "xingchen"] = "simulated"
    #: base of an OpenAI-compatible API, up to and with `/v1`
    openai_base_url: str = Field(default="", repr=False)
    #: key for that API
    openai_api_key: SecretStr = SecretStr("")
    #: model asked for
    openai_model: str = ""
    #: longest time to connect to the model, in ms
    openai_connect_timeout_ms: int = Field(default=5_000, ge=1)
    #: address of iFlytek's workflows, without `/workflow/v1`
    xingchen_base_url: str = Field(default="https://xingchen-api.xf-yun.com", repr=False)
    #: API key of the app that the workflows are bound to
    xingchen_api_key: SecretStr = SecretStr("")
    #: API secret of that app
    xingchen_api_secret: SecretStr = SecretStr("")
    #: whether workflows answer in pieces, with the texts of their message nodes too; otherwise
    #: only the end node speaks
    xingchen_stream: bool = False
    #: longest time to connect to the workflows, in ms
    xingchen_connect_timeout_ms: int = Field(default=5_000, ge=1)
    #: how long the simulated model thinks, in ms
    simulated_latency_ms: int = Field(default=1_000, ge=0)
    #: time between two heartbeats of an owner, in ms
    heartbeat_ms: int = Field(default=2_000, ge=20)
    #: silence after which an owner counts as dead, in ms
    takeover_detect_ms: int = Field(default=6_000, ge=100)
    #: time that a stopping worker gives to running work, in s
    grace_s: float = Field(default=25.0, gt=1)
    #: shards of the Redis names; all workers of a namespace must agree
    flight_shards: int = Field(default=16, ge=1, le=1024)
    #: failures in a row of one provider and model that open its breaker
    breaker_failures: int = Field(default=5, ge=1)
    #: how long an open breaker refuses calls before it lets one try, in s
    breaker_reset_s: float = Field(default=30, gt=0)
    #: further failures and changes to the shipped checklist; a TOML file, empty: none
    checklist_file: str = ""
    #: share of calls that may be retries, over the window below
    retry_budget_ratio: float = Field(default=0.2, ge=0, le=1)
    #: retries that are always allowed in the window
    retry_budget_min: int = Field(default=3, ge=0)
    #: window over which retries are budgeted, in s
    retry_budget_window_s: float = Field(default=10, gt=0)
    #: smaller model that stands in where the checklist says so; empty: there is none
    openai_small_model: str = ""
    #: model that a stage asks while it is rolled back; empty: the smaller one
    openai_former_model: str = ""
    #: longest wait for Redis before a new call goes on without it, in ms
    redis_timeout_ms: int = Field(default=250, ge=10)
    #: connections for commands to one Redis server, a worker (more read: docs/redis.md)
    redis_connections: int = Field(default=4, ge=1, le=64)
    #: callers that may wait in one worker; more get 503
    max_waiters: int = Field(default=900, ge=1)
    #: gunicorn's open connections a worker; above max_waiters, which leaves room for /healthz
    worker_connections: int = Field(default=1_000, ge=2)
    #: largest answer that is stored, in bytes, before compression
    max_result_bytes: int = Field(default=4 * 1024 * 1024, ge=1_024)
    #: how compressed answers stand in Redis
    result_encoding: Literal["base64", "raw"] = "base64"
    #: memory for the worker's own replays, in bytes
    l1_max_bytes: int = Field(default=32 * 1024 * 1024, ge=0)
    #: largest request body, in bytes
    max_body_bytes: int = Field(default=1024 * 1024, ge=1_024)
    #: longest time in which a request's body must have come, in ms
    body_timeout_ms: int = Field(default=10_000, ge=100)
    #: models that the OpenAI door offers, as JSON list; empty: whatever the model's service knows
    gateway_models: tuple[str, ...] = ()
    #: fields of a chat that cannot change its answer, as JSON list: bodies that differ only in them
    #: are the same question
    gateway_ignored_fields: tuple[str, ...] = (
        "stream",
        "stream_options",
        "metadata",
        "user",
        "store",
        "service_tier",
    )
    #: largest body of a chat, images included, in bytes
    gateway_max_body_bytes: int = Field(default=20 * 1024 * 1024, ge=1_024)
    #: silence of the model after which a stream's head is sent without knowing how it ends, in ms
    gateway_head_after_ms: int = Field(default=20_000, ge=100)
    #: silence in a stream after which a comment is sent that keeps the connection open, in ms
    gateway_keep_alive_ms: int = Field(default=10_000, ge=100)
    #: longest time for which a client may take nothing of its answer, in ms
    gateway_send_timeout_ms: int = Field(default=60_000, ge=100)
    #: whether the model is asked to count tokens in streams; some older services refuse that
    gateway_count_tokens: bool = True
    #: folder for files that the service keeps
    data_dir: str = Field(default="data", min_length=1)
    #: largest PDF, in bytes
    max_file_bytes: int = Field(default=10 * 1024 * 1024, ge=1_024)
    #: largest picture, in bytes
    max_image_bytes: int = Field(default=10 * 1024 * 1024, ge=1_024)
    #: pages that a PDF may have
    max_pages: int = Field(default=100, ge=1)
    #: pixels that a picture may have, width × height
    max_pixels: int = Field(default=50_000_000, ge=1)
    #: computing time for reading one file, in s; by the clock it may take
    #: twice as long and 5 s
    file_parse_timeout_s: int = Field(default=15, ge=1)
    #: memory for reading one file, in MiB
    file_parse_memory_mb: int = Field(default=640, ge=128)
    #: files that a worker reads at once; more wait
    file_parse_concurrency: int = Field(default=2, ge=1)
    #: where answers are kept as rows: `postgresql://user:password@host/database` or
    #: `sqlite:////file` (docs/records.md); empty: a SQLite file in data_dir
    database_url: str = Field(default="", repr=False)
    #: connections to the database, or threads for SQLite, a worker
    database_pool_size: int = Field(default=4, ge=1, le=64)
    #: longest wait for the database, in ms; an answer that cannot be kept by then is given all
    #: the same
    database_timeout_ms: int = Field(default=2_000, ge=100)
    #: age in days at which rows and files are forgotten; 0: they are kept
    retention_days: int = Field(default=0, ge=0, le=36_500)
    #: host of the StatsD server; empty: no metrics are sent
    statsd_host: str = ""
    #: UDP port of the StatsD server
    statsd_port: int = Field(default=8125, ge=1, le=65_535)
    #: first part of every metric name
    statsd_prefix: str = Field(
        default="flightsvc", max_length=100, pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$"
    )
    #: time between two sendings of metrics, in ms
    statsd_flush_ms: int = Field(default=1_000, ge=100)
    #: bearer tokens, as JSON: `{"token": "tenant"}`; empty: no tokens, and loopback only
    api_tokens: Tokens = Field(default_factory=FrozenDict, repr=False)
    #: operators' bearer tokens, as JSON: `{"token": "name"}`; empty: no operator routes
    operator_tokens: Tokens = Field(default_factory=FrozenDict, repr=False)
    #: log lines as JSON, as text, or (auto) as text on a terminal only
    log_format: Literal["auto", "json", "text"] = "auto"
    #: whether prompts and answers may stand in the log
    log_content: bool = False
    #: address that alerts are posted to, as JSON
    alert_webhook_url: str = Field(default="", repr=False)
    #: address of a WeChat Work robot that alerts are sent to
    alert_wecom_url: str = Field(default="", repr=False)
    #: mail server for alerts: `smtp://user:password@host:port`
    alert_smtp_url: str = Field(default="", repr=False)
    #: who alert mails come from
    alert_email_from: str = ""
    #: who alert mails go to, as JSON list
    alert_email_to: tuple[str, ...] = ()
    #: names of further stages that may have settings of their own
    custom_stages: tuple[StageName, ...] = ()
    #: settings by stage
    stages: Stages = Field(default_factory=dict)

    @classmethod
    def checked(cls, **values: Any) -> Self:
        """As ``Settings(…)``, with this package's own error.

        :raises SettingsError: names each setting and the fix.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            raise refusal(explain(error, cls, plain)) from None

    def stage(self, name: str) -> StageSettings:
        """The settings of a stage; those of ``default`` where it has none of its own."""
        return self.stages.get(name) or self.stages["default"]

    def wait_ms(self, name: str) -> int:
        """A waiter's patience in ms: queueing, one model budget and takeover detection."""
        stage = self.stage(name)
        return stage.wait_ms or stage.span_ms + self.takeover_detect_ms + 1_000

    @model_validator(mode="before")
    @classmethod
    def _fill_stages(cls, values: Any) -> Any:
        """Lay what is given for a stage over that stage's defaults."""
        if not isinstance(values, dict):
            return values
        given = values.get("stages")
        if given is not None and not isinstance(given, dict):
            return values  # pydantic says what is wrong with it
        return {**values, "stages": filled(given or {})}

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """Refuse settings that contradict each other."""
        problems = list(contradictions(self))
        if problems:
            raise Contradictions(problems)
        return self
