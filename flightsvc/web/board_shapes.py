"""What ``GET /flights/state`` says, and the status page shows."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from flightsvc.flight.state import FlightState
from flightsvc.web.openapi_shapes import FlightId, ModuleShown, Moment, Shown

Count = Annotated[int, Field(ge=0)]
Coordination = Literal["ok", "degraded", "off"]
BreakerState = Literal["closed", "half-open", "open"]


class LiveFlightShown(Shown):
    """A flight in the air: how it stands, nothing of what it is about."""

    flight_id: FlightId
    #: which kind of question it answers
    stage: str
    #: whose it is; empty where there are no tenants
    tenant: str
    state: FlightState
    #: the worker that owns it
    owner: str
    #: whether that is the worker that says this
    here: bool
    #: number of its ownership; 0: without Redis
    fence: Count
    #: how many owners it had
    ownerships: Count
    #: callers that wait for it in the worker that says this
    waiters: Count
    #: other workers in which callers wait for it
    followers: Count
    #: since its owner began
    age_ms: Count
    #: since its owner last said that it lives; missing without Redis
    silent_ms: Count | None


class LiveShown(Shown):
    """The flights in the air."""

    #: how many there are
    total: Count
    #: whether all workers' are among them; else Redis, or a part of it, does not answer
    whole: bool
    #: at most 200 of them
    flights: list[LiveFlightShown]


class SavingsShown(Shown):
    """The last day, to a tenth of it."""

    #: callers
    asked: Count
    #: calls of the model
    calls: Count
    #: answers for which none was made
    saved: Count
    #: share of the callers that those are
    percent: Annotated[float, Field(ge=0, le=100)]
    #: whether it is the sum of all workers; else this one's part
    whole: bool


class BreakerShown(Shown):
    """The breaker of a model, as this worker and its news of the others have it."""

    provider: str
    model: str
    state: BreakerState
    #: how long it stays open at least, in s
    open_for_s: Annotated[float, Field(ge=0)] | None


class WorkerShown(Shown):
    """The worker that says this."""

    id: str
    pid: int
    #: whether it is about to stop
    draining: bool
    #: flights that it takes part in
    flights: Count
    #: callers that wait in it
    waiters: Count


class BoardShown(Shown):
    """How things stand."""

    #: when that was, by this worker's clock
    at: Moment
    version: str
    mode: Literal["distributed", "hybrid", "local"]
    #: `degraded`: Redis does not answer as it should; `off`: mode `local`
    coordination: Coordination
    worker: WorkerShown
    live: LiveShown
    savings: SavingsShown
    #: of all models that this worker has asked, or that another one found failing
    breakers: list[BreakerShown]
    #: the modules that are paused, rolled back or need a person
    modules: list[ModuleShown]


class BoardEvent(Shown):
    """The page's changing part, once more."""

    html: str


class TokenField(Shown):
    """The sign-in form."""

    #: of an operator
    token: str = ""
