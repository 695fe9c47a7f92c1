"""One alert, and how it reads."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from flightsvc.checklist.model import AlertPolicy, Code


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The failure that made the count full; by it the log's lines are found."""

    stage: str = ""
    trace_id: str = ""
    flight_id: str = ""
    fingerprint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A code of the checklist was met too often.

    :param policy: the alert policy of the checklist that was broken.
    :param count: failures with this code within the window, in the whole cluster.
    :param rate: their share of the calls; None: the policy looks at the count.
    :param service: the namespace that the workers share.
    :param module: the stage or provider whose flag "needs a person" was raised, by its full name;
        ``count`` is then its failures in a row. Empty: the code was met too often.
    :param paused: whether it takes no more calls until a person has come.
    """

    code: Code
    policy: AlertPolicy
    count: int
    rate: float | None
    sample: Sample
    service: str
    module: str = ""
    paused: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    time: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def title(self) -> str:
        """One short line."""
        what = f"{self.module} needs a person: " if self.module else ""
        return f"[{self.policy.severity}] {what}{self.code.name} ({self.service})"

    @property
    def summary(self) -> str:
        """What happened, in one sentence."""
        if self.module:
            paused = "; it is paused until somebody resumes it" if self.paused else ""
            return f"{self.count} failures in a row{paused}"
        within = f"within {self.policy.window_s} s"
        if self.rate is None:
            return f"{self.count} failures {within} (alert from {self.policy.count})"
        limit = self.policy.rate or 0.0
        return f"{self.count} failures, {self.rate:.1%} of all calls, {within} (from {limit:.1%})"

    def facts(self) -> list[tuple[str, str]]:
        """Everything else that a person wants to know, as names and values; none is empty."""
        named = [
            ("meaning", self.code.about_en),
            ("含义", self.code.about_zh),
            ("level", f"{self.code.level}, {self.code.cause}"),
            ("policy", self.policy.name),
            ("module", self.module),
            ("stage", self.sample.stage),
            ("trace_id", self.sample.trace_id),
            ("flight_id", self.sample.flight_id),
            ("fingerprint", self.sample.fingerprint),
            ("time", self.time.isoformat(timespec="seconds")),
        ]
        return [(name, value) for name, value in named if value]

    def document(self) -> dict[str, Any]:
        """The alert as JSON, as docs/alerts.md describes it."""
        policy, code = self.policy, self.code
        return {
            "version": 1,
            "event": "alert",
            "id": self.id,
            "time": self.time.isoformat(timespec="milliseconds"),
            "service": self.service,
            "severity": policy.severity,
            "policy": policy.name,
            "code": code.name,
            "level": code.level,
            "cause": code.cause,
            "summary": self.summary,
            "about_en": code.about_en or None,
            "about_zh": code.about_zh or None,
            "needs_person": self.module or None,
            "paused": self.paused,
            "count": self.count,
            "rate": self.rate,
            "threshold": {
                "count": policy.count,
                "rate": policy.rate if policy.count is None else None,
                "window_s": policy.window_s,
            },
            "stage": self.sample.stage or None,
            "trace_id": self.sample.trace_id or None,
            "flight_id": self.sample.flight_id or None,
            "fingerprint": self.sample.fingerprint or None,
        }
