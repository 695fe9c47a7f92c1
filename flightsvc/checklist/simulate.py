"""What the list would have made of a recorded trace: attempts, latency, amplification.

Time passes in the trace only. The breaker and the bulkhead are not played: what they would have
refused is not known from a trace of outcomes.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from flightsvc.checklist.model import Checklist, Code
from flightsvc.checklist.trace import Outcome, Request
from flightsvc.errors import AttemptTimeout, BudgetExhausted
from flightsvc.settings import Settings, StageSettings

#: the code of a call whose retries are all used up
EXHAUSTED = "RETRY_EXHAUSTED"
#: what the row of requests that met no failure is called
NO_FAILURE = "(no failure)"
#: an attempt with less time is not begun, in ms
USEFUL_MS = 100
#: what stands in for an answer without a model
STAND_INS = ("template", "last_good", "clarify", "ask_input")
#: what a client is told beside an error
TOLD = ("refuse", "manual_review")


@dataclass(slots=True)
class Played:
    """One request, replayed.

    :param first: its first failure's code; ``NO_FAILURE`` if it met none.
    :param calls: calls of the primary model, ``smaller`` those of the smaller one.
    :param ended: ``answered``, ``fallback`` (something stands in) or ``failed`` (the client is told
        an error, also where a person takes over).
    :param action: what the client is told was done instead.
    :param held_back: why no further retry was made: ``time``, ``budget`` (of retries) or nothing.
    """

    first: str = NO_FAILURE
    calls: int = 0
    smaller: int = 0
    waited_ms: int = 0
    latency_ms: int = 0
    ended: str = "failed"
    action: str = ""
    held_back: str = ""


class RetryBudget:
    """So many retries in the window, as the settings say; charged before the wait."""

    def __init__(self, settings: Settings) -> None:
        self._window_ms = settings.retry_budget_window_s * 1_000
        self._ratio, self._least = settings.retry_budget_ratio, settings.retry_budget_min
        self._calls: deque[int] = deque()
        self._retries: deque[int] = deque()

    def called(self, now_ms: int) -> None:
        """Count a request."""
        self._calls.append(now_ms)

    def take(self, now_ms: int) -> bool:
        """Charge one retry, if there is one left."""
        for times in (self._calls, self._retries):
            while times and times[0] <= now_ms - self._window_ms:
                times.popleft()
        if len(self._retries) >= max(self._least, self._ratio * len(self._calls)):
            return False
        self._retries.append(now_ms)
        return True


def simulate(
    trace: Sequence[Request], checklist: Checklist, settings: Settings, *, smaller_ms: int | None
) -> list[Played]:
    """Replay a trace.

    :param trace: in the order of its times; see :func:`flightsvc.checklist.trace.read_trace`.
    :param smaller_ms: how long the smaller model takes where the trace does not say, in ms; None:
        there is no smaller model.
    """
    play = _Play(trace, checklist, settings, smaller_ms)
    return play.run()


class _Play:
    def __init__(
        self,
        trace: Sequence[Request],
        checklist: Checklist,
        settings: Settings,
        smaller_ms: int | None,
    ) -> None:
        self._trace = trace
        self._checklist = checklist
        self._settings = settings
        self._smaller_ms = smaller_ms
        self._budget = RetryBudget(settings)
        self._weather = _Weather(trace)

    def run(self) -> list[Played]:
        """All requests side by side, each step at its time."""
        played = [Played() for _ in self._trace]
        steps = [self._request(*pair) for pair in zip(self._trace, played, strict=True)]
        due = [(request.at_ms, number) for number, request in enumerate(self._trace)]
        heapq.heapify(due)
        while due:
            _, number = heapq.heappop(due)
            at_ms = next(steps[number], None)
            if at_ms is not None:
                heapq.heappush(due, (at_ms, number))
        return played

    def _request(self, request: Request, seen: Played) -> Generator[int, None, None]:
        """Each step yields the time of the next."""
        stage = self._settings.stage(request.stage)
        now_ms, end_ms = request.at_ms, request.at_ms + stage.budget_ms
        self._budget.called(now_ms)
        while True:
            outcome = self._outcome(request, seen.calls, now_ms)
            seen.calls += 1
            now_ms, code = self._attempt(outcome, stage, request, now_ms, end_ms)
            yield now_ms
            if code is None:
                self._end(seen, request, now_ms, "answered")
                return
            seen.first = code.name if seen.first == NO_FAILURE else seen.first
            wait_ms = self._wait(code, stage, outcome, seen, end_ms - now_ms)
            if wait_ms is None or not self._charge(seen, now_ms):
                break
            seen.waited_ms += wait_ms
            now_ms += wait_ms
            yield now_ms
        yield from self._fallback(request, seen, code, now_ms, end_ms)

    def _outcome(self, request: Request, number: int, now_ms: int) -> Outcome:
        recorded = [request, *request.attempts]
        return recorded[number] if number < len(recorded) else self._weather.at(request, now_ms)

    def _attempt(
        self, outcome: Outcome, stage: StageSettings, request: Request, now_ms: int, end_ms: int
    ) -> tuple[int, Code | None]:
        """When an attempt ends, and its failure."""
        limit_ms = min(stage.timeout_ms, end_ms - now_ms)
        error = outcome.error()
        if outcome.latency_ms > limit_ms:
            is_last = limit_ms < stage.timeout_ms
            error = BudgetExhausted() if is_last else AttemptTimeout()
        ended_ms = now_ms + min(outcome.latency_ms, limit_ms)
        if error is None:
            return ended_ms, None
        return ended_ms, self._checklist.classify(error, request.provider)

    def _wait(
        self, code: Code, stage: StageSettings, outcome: Outcome, seen: Played, left_ms: int
    ) -> int | None:
        """The wait before the next attempt, in ms; None: there is none."""
        delays = self._checklist.delays_ms(code, stage)
        if seen.calls > len(delays):
            return None
        wait_ms = max(delays[seen.calls - 1], outcome.retry_after_ms)
        if wait_ms + USEFUL_MS > left_ms:
            seen.held_back = "time"
            return None
        return wait_ms

    def _charge(self, seen: Played, now_ms: int) -> bool:
        if self._budget.take(now_ms):
            return True
        seen.held_back = "budget"
        return False

    def _fallback(
        self, request: Request, seen: Played, code: Code, now_ms: int, end_ms: int
    ) -> Generator[int, None, None]:
        stage, action = self._settings.stage(request.stage), code.fallback.action
        used_up = not seen.held_back and bool(self._checklist.delays_ms(code, stage))
        wait_ms = (used_up and code.retry and code.retry.fallback_route_after_ms) or 0
        outcome = self._instead(request, seen, action)
        if outcome is not None and now_ms + wait_ms + USEFUL_MS <= end_ms:
            seen.waited_ms += wait_ms
            seen.smaller += action == "smaller_model"
            seen.calls += action == "truncate"
            yield now_ms + wait_ms
            now_ms, failed = self._attempt(outcome, stage, request, now_ms + wait_ms, end_ms)
            if failed is None:
                self._end(seen, request, now_ms, "fallback", action)
                return
        codes = [code, self._checklist.code(EXHAUSTED)] if used_up else [code]
        actions = [each.fallback.action for each in codes]
        stand_in = next((each for each in actions if each in STAND_INS), "")
        told = actions[-1] if actions[-1] in TOLD else ""
        self._end(seen, request, now_ms, "fallback" if stand_in else "failed", stand_in or told)

    def _instead(self, request: Request, seen: Played, action: str) -> Outcome | None:
        """What the fallback route met; None: there is none."""
        if action == "smaller_model":
            return self._of_smaller(request)
        if action != "truncate":
            return None
        recorded = [request, *request.attempts]
        # no other request says how a shorter input would have fared
        answered = Outcome(latency_ms=request.latency_ms)
        return recorded[seen.calls] if seen.calls < len(recorded) else answered

    def _of_smaller(self, request: Request) -> Outcome | None:
        if request.smaller is not None or self._smaller_ms is None:
            return request.smaller
        return Outcome(latency_ms=self._smaller_ms)

    def _end(
        self, seen: Played, request: Request, now_ms: int, how: str, action: str = ""
    ) -> None:
        seen.latency_ms, seen.ended, seen.action = now_ms - request.at_ms, how, action


class _Weather:
    """What a further attempt would have met, where none was recorded: what the next request of
    the same stage and provider met, or the last one's outcome at the trace's end."""

    def __init__(self, trace: Sequence[Request]) -> None:
        self._by_place: dict[tuple[str, str], list[Request]] = {}
        for request in trace:
            self._by_place.setdefault((request.stage, request.provider), []).append(request)

    def at(self, request: Request, now_ms: int) -> Outcome:
        """The outcome of an attempt at this time."""
        others = self._by_place[request.stage, request.provider]
        at = bisect_left(others, now_ms, key=lambda other: other.at_ms)
        return others[min(at, len(others) - 1)]
