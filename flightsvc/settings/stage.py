"""The settings of one stage, and the stages that the service knows."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

#: What differs from :class:`StageSettings`, by stage; ``default`` holds for every stage of a
#: library user.
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
        "abandon": True,
    },
}

Delays = Annotated[tuple[Annotated[int, Field(ge=100)], ...], Field(max_length=2)]

#: a workflow's id; it has digits only, so a file may have it as a number
FlowId = Annotated[
    str,
    BeforeValidator(lambda given: str(given) if type(given) is int else given),
    Field(pattern=r"^[A-Za-z0-9_-]{0,64}$"),
]


class StageSettings(BaseModel):
    """How one kind of AI request is called, shared and kept."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True
    )

    #: longest time for one attempt, in ms; shrinks to what is left of the budget
    timeout_ms: int = Field(default=20_000, ge=10)
    #: longest time for the whole call, queueing and retries included, in ms
    budget_ms: int = Field(default=30_000, ge=10)
    #: longest time that a caller waits, in ms; 0: budget + takeover detection + 1 s
    wait_ms: int = Field(default=0, ge=0)
    #: calls of the model at once, a worker
    concurrency: int = Field(default=30, ge=1)
    #: calls that may queue for a free place, a worker
    queue: int = Field(default=30, ge=0)
    #: waits before the retries, in ms (at most two, each at least 100)
    retry_delays_ms: Delays = (100, 300)
    #: longest silence between two pieces of the model's answer, in ms
    between_bytes_ms: int = Field(default=30_000, ge=10)
    #: how long an answer replays, in s
    result_ttl_s: float = Field(default=600, gt=0)
    #: how long a failure is remembered, in s
    failure_ttl_s: float = Field(default=60, gt=0)
    #: how long an answer replays from the worker's own memory, in s, at most `result_ttl_s`;
    #: 0: off
    l1_ttl_s: float = Field(default=30, ge=0)
    #: whether the stage takes its lock of the session first: one call of the stage at a time in a
    #: session; other stages have locks of their own
    session_lock: bool = False
    #: how long a call waits for another of its stage and session, in ms
    session_lock_wait_ms: int = Field(default=10_000, ge=0)
    #: workflow that XingChen runs for the stage
    flow_id: FlowId = ""
    #: what one call of the model costs, in a currency of your choice, for the metrics of money
    call_price: float = Field(default=0, ge=0, le=1_000_000)
    #: whether the call is stopped when all its callers, on all workers, have gone; otherwise it
    #: ends and its answer is stored
    abandon: bool = False

    @model_validator(mode="after")
    def _shorten_l1(self) -> Self:
        """Who shortens ``result_ttl_s`` need not think of the other."""
        if "l1_ttl_s" not in self.model_fields_set:
            self.__dict__["l1_ttl_s"] = min(self.l1_ttl_s, self.result_ttl_s)
        return self


    @property
    def price_millionths(self) -> int:
        """``call_price`` in millionths: counters add up whole numbers."""
        return round(self.call_price * 1_000_000)

    @property
    def span_ms(self) -> int:
        """How long one call may take, the wait for its session included."""
        return self.budget_ms + (self.session_lock_wait_ms if self.session_lock else 0)


def filled(given: dict[Any, Any]) -> dict[Any, Any]:
    """All stages: what is given for each, laid over its defaults.

    A stage of the user's own starts from what is given for ``default``. What is not a table is
    left for pydantic to refuse.
    """
    default = given.get("default", {})
    if isinstance(default, StageSettings):
        default = default.model_dump(exclude_unset=True)
    stages: dict[Any, Any] = {}
    for name in dict.fromkeys([*STAGE_DEFAULTS, *given]):
        own = given.get(name, {})
        base = STAGE_DEFAULTS.get(name, default)
        if isinstance(own, dict) and isinstance(base, dict):
            own = {**base, **own}
        stages[name] = own
    return stages


def stage_default(stage: str, field: str) -> Any:
    """The default of one field of a stage."""
    return STAGE_DEFAULTS.get(stage, {}).get(field, getattr(_PLAIN, field))


_PLAIN = StageSettings()
