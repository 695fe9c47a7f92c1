"""What the checklist says about each failure, resolved: every policy stands where it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from flightsvc.errors import FailureType
from flightsvc.settings.frozen import FrozenDict
from flightsvc.settings.stage import StageSettings
from flightsvc.settings.wording import nearest

if TYPE_CHECKING:
    from flightsvc.checklist.classify import Classifier
    from flightsvc.checklist.merge import Origins

#: what a failure reaches: one request, one session, the whole service (second article, 2.2)
Level = Literal["L1", "L2", "L3"]
#: where it comes from (second article, 3.1)
Cause = Literal["infrastructure", "model", "input", "integration"]
#: what is done instead of an answer
Action = Literal[
    "smaller_model",
    "truncate",
    "template",
    "last_good",
    "clarify",
    "ask_input",
    "refuse",
    "manual_review",
    "none",
]
#: what changes beside the answer
StateKind = Literal[
    "freeze_session",
    "block_user",
    "manual_review",
    "rollback_model",
    "stop_sync",
    "clarifying",
    "awaiting_input",
]
Severity = Literal["P1", "P2", "P3"]
Channel = Literal["webhook", "wecom", "email", "log"]
Param = str | int | bool

#: the code of whatever no rule knows
UNKNOWN = "AI_UNKNOWN_ERROR"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When the same call is made again.

    :param delays_ms: the wait before each retry on the primary route, in ms; at most two.
    :param fallback_route_after_ms: the wait after the last attempt before the fallback route is
        tried, in ms; None: the fallback follows at once, whichever it is.
    """

    name: str
    delays_ms: tuple[int, ...]
    fallback_route_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class FallbackPolicy:
    """What is done where no attempt brought an answer.

    :param params: what the action needs to know (:mod:`flightsvc.checklist.schema` lists it).
    """

    name: str
    action: Action
    params: Mapping[str, Param] = field(default_factory=FrozenDict)


@dataclass(frozen=True, slots=True)
class StateChange:
    """What a failure changes beside the answer.

    :param ttl_s: how long it holds, in s; 0: until it is undone.
    :param after: so many failures of the code in a row bring it about.
    """

    kind: StateKind
    ttl_s: int = 0
    after: int = 1


@dataclass(frozen=True, slots=True)
class AlertPolicy:
    """Who is woken, and from when on.

    :param count: so many failures within the window; None: ``rate`` decides.
    :param rate: this share of the calls within the window, above 0 and at most 1.
    :param window_s: the window, in s; also the shortest time between two messages.
    :param min_calls: a rate over fewer calls says nothing.
    """

    name: str
    channels: tuple[Channel, ...]
    severity: Severity
    window_s: int
    count: int | None = None
    rate: float | None = None
    min_calls: int = 1


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of failure, and everything that is done about it.

    :param retryable: whether a later call of the same question may succeed.
    :param retry: the retries within one call; None: none.
    :param forbids_retry: a retry would do harm (a payment), so the list refuses one.
    :param trips_after: so many failures in a row raise the flag "needs a person"; 0: never.
    :param pauses: whether they also pause the stage or provider.
    :param trips_alert: who is woken by the flag; None: nobody.
    :param status: HTTP status for a client of the service.
    :param user_sees: whether a user is ever told; if not, the messages are empty.
    :param about_zh: when it happens, for reviewers; ``about_en`` the same in English.
    """

    name: str
    level: Level
    cause: Cause
    failure_type: FailureType
    retryable: bool
    retry: RetryPolicy | None
    fallback: FallbackPolicy
    message_zh: str
    message_en: str
    state: StateChange | None
    alert: AlertPolicy | None
    trips_after: int
    pauses: bool
    status: int
    trips_alert: AlertPolicy | None = None
    forbids_retry: bool = False
    user_sees: bool = True
    about_zh: str = ""
    about_en: str = ""

    def message(self, language: str) -> str:
        """What the user is told.

        :param language: ``zh…`` for Chinese; anything else is English.
        """
        return self.message_zh if language.lower().startswith("zh") else self.message_en


class Checklist:
    """The whole list; it never changes. See :func:`flightsvc.checklist.load_checklist`."""

    def __init__(self, codes: Mapping[str, Code], classifier: Classifier, origins: Origins) -> None:
        self.codes: Mapping[str, Code] = FrozenDict(codes)
        self.classifier = classifier
        self.origins = origins

    def __iter__(self) -> Iterator[Code]:
        return iter(self.codes.values())

    def code(self, name: str) -> Code:
        """The code of this name.

        :raises KeyError: there is none.
        """
        try:
            return self.codes[name]
        except KeyError:
            near = nearest(name, self.codes)
            hint = f"; did you mean {near}?" if near else ""
            raise KeyError(f"{name} is no code of the checklist{hint}") from None

    def classify(self, error: BaseException, provider: str = "") -> Code:
        """The one code of a failure: a named one that the error carries, or the first rule that
        fits, or ``AI_UNKNOWN_ERROR``.

        :param provider: which provider was asked, where one was (``openai``, ``xingchen``).
        """
        return self.codes[self.classifier.name_of(error, provider)]

    def delays_ms(self, code: Code, stage: StageSettings) -> tuple[int, ...]:
        """The waits before the retries of a code in a stage, in ms.

        The stage says how many retries it allows at most and how long each waits at least
        (``retry_delays_ms``); the code's policy says the rest.
        """
        if code.retry is None:
            return ()
        return tuple(map(max, zip(code.retry.delays_ms, stage.retry_delays_ms, strict=False)))

    @property
    def retry_policies(self) -> dict[str, RetryPolicy]:
        """The retry policies in use, by name."""
        return {code.retry.name: code.retry for code in self if code.retry}

    @property
    def fallback_policies(self) -> dict[str, FallbackPolicy]:
        """The fallback policies in use, by name."""
        return {code.fallback.name: code.fallback for code in self}

    @property
    def alert_policies(self) -> dict[str, AlertPolicy]:
        """The alert policies in use, by name."""
        found = [alert for code in self for alert in (code.alert, code.trips_alert)]
        return {alert.name: alert for alert in found if alert}

    def retry_policy(self, name: str) -> RetryPolicy:
        """:raises KeyError: no code uses a policy of this name."""
        return self.retry_policies[name]

    def fallback_policy(self, name: str) -> FallbackPolicy:
        """:raises KeyError: no code uses a policy of this name."""
        return self.fallback_policies[name]

    def alert_policy(self, name: str) -> AlertPolicy:
        """:raises KeyError: no code uses a policy of this name."""
        return self.alert_policies[name]
