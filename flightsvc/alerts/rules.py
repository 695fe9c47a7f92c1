"""When a policy of the checklist is broken, and who says so."""

from __future__ import annotations

from dataclasses import dataclass

from flightsvc.alerts.counters import Counters
from flightsvc.checklist.model import AlertPolicy, Code

#: what rates are shares of: guarded calls
CALLS = "alerts.calls"


@dataclass(frozen=True, slots=True)
class Breach:
    """A policy is broken now.

    :param count: failures within the window.
    :param rate: their share of the calls, where the policy asks for it.
    """

    count: int
    rate: float | None


def failures_of(code: Code) -> str:
    """Name of the count of failures with a code."""
    return f"alerts.failures.{code.name}"


def breach_of(code: Code, policy: AlertPolicy, counters: Counters) -> Breach | None:
    """Whether the failures of a code break its policy: at ``count`` failures within the window,
    or (where the policy names no count) at a share of ``rate`` of at least ``min_calls`` calls.
    """
    count = counters.total(failures_of(code), policy.window_s)
    if policy.count is not None:
        return Breach(count, None) if count >= policy.count else None
    calls = counters.total(CALLS, policy.window_s)
    if policy.rate is None or calls < max(1, policy.min_calls):
        return None
    # the two are counted one after the other: a share may seem to be above 1
    rate = min(1.0, count / calls)
    return Breach(count, rate) if rate >= policy.rate else None


def may_tell(code: Code, policy: AlertPolicy, counters: Counters, module: str = "") -> bool:
    """Whether it is for this worker to tell: once a window, for all workers together.

    :param module: whose flag was raised; each has a word of its own.
    """
    what = f"{policy.name}.{module}.{code.name}" if module else f"{policy.name}.{code.name}"
    return counters.claim_once(f"alerts.told.{what}", policy.window_s)
