"""Workers under random harm: whatever happens, what they did keeps the invariants.

Three workers ask the same questions all the time, through lines of their own to one Redis. They
are killed and frozen, their requests and replies are lost, held and cut, scripts and data are lost.
Then everything is healed. Each run has a seed, which is printed; the time is the machine's own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proof.chaos import Chaos
from tests.proof.checker import report
from tests.proof.effort import first_seed, rounds
from tests.proof.history import Entry

#: how long harm is done in one run, in seconds
HARM_S = 3.0
FIRST = first_seed()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + rounds(3, share=0.02)))
def test_under_random_faults_the_invariants_hold(tmp_path: Path, seed: int) -> None:
    print(f"PROOF_SEED={seed}")
    with Chaos(tmp_path, seed) as chaos:
        history = chaos.run(HARM_S)
    assert not (wrong := report(history)), wrong
    _is_worth_it(history)


def test_without_faults_every_question_is_asked_once(tmp_path: Path) -> None:
    with Chaos(tmp_path, FIRST, calm=True) as chaos:
        history = chaos.run(2.0)
    assert not (wrong := report(history)), wrong
    _is_worth_it(history)


def _is_worth_it(history: list[Entry]) -> None:
    """Enough has happened for the rules to mean something."""
    roles = {entry.got for entry in history if entry.what == "answer"}
    assert {"owner", "follower", "l1"} <= roles
    assert sum(entry.what == "answer" for entry in history) > 50
