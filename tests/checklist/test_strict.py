"""A list that cannot work is refused: each fault by file, line and fix, all at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from flightsvc.checklist import load_checklist
from flightsvc.checklist.checks import TEMPLATES
from flightsvc.errors import SettingsError
from flightsvc.interview import templates
from flightsvc.settings import Settings
from tests.checklist.lists import CODE, OWN, faults, merged

#: text, the line of the fault, and what has to be said
REFUSED: dict[str, tuple[str, int, list[str]]] = {
    "unknown section": ("\n[retires.x]\n", 2, ["retires", "did you mean retry?"]),
    "unknown field of a code": (
        "[codes.AI_INFRA_TIMEOUT]\nretri = 'backoff'",
        2,
        ["codes.AI_INFRA_TIMEOUT.retri", "did you mean retry?"],
    ),
    "unknown field of a state": (
        "[codes.AI_INFRA_UNAVAILABLE]\nstate = { kind = 'freeze_session', forever = true }",
        2,
        ["codes.AI_INFRA_UNAVAILABLE.state.forever", "remove it"],
    ),
    "unknown field of a rule": (
        "[[match]]\nto = 'OVERLOAD'\nexcepion = 'X'",
        3,
        ["match 1.excepion", "did you mean exception?"],
    ),
    "wrong level": ("[codes.OVERLOAD]\nlevel = 'L4'", 2, ["'L4'", "'L1', 'L2' or 'L3'"]),
    "a number as text": ("[codes.OVERLOAD]\nstatus = '503'", 2, ["status", "'503'", "integer"]),
    "a success status": ("[codes.OVERLOAD]\nstatus = 200", 2, ["200", "400"]),
    "a new code that lacks fields": (
        "# mine\n[codes.AI_NEW]\nlevel = 'L1'",
        2,
        ["codes.AI_NEW lacks cause", "about_en", "add"],
    ),
    "a bad name": (f"[codes.ai_new]{CODE}", 1, ["'ai_new'", "AI_INFRA_TIMEOUT"]),
    "missing retry policy": (
        "[codes.AI_INFRA_TIMEOUT]\nretry = 'backof'",
        2,
        ["no retry policy 'backof'", "did you mean backoff?"],
    ),
    "missing fallback policy": (
        "[codes.OVERLOAD]\nfallback = 'xyz'",
        2,
        ["no fallback policy 'xyz'", "[fallback.xyz]"],
    ),
    "missing alert policy": (
        "[codes.OVERLOAD]\n\nalert = 'overload_rat'",
        3,
        ["no alert policy", "did you mean overload_rate?"],
    ),
    "unused policy": (
        "[retry.slow]\ndelays_ms = [500]",
        1,
        ["retry.slow is used by no code", "remove it"],
    ),
    "no cool-down": (
        "[retry.backoff]\ndelays_ms = [99, 300]",
        2,
        ["retry.backoff.delays_ms 1 is 99", "greater than or equal to 100"],
    ),
    "a third retry": (
        "[retry.backoff]\ndelays_ms = [100, 300, 900]",
        2,
        ["[100, 300, 900]", "at most 2"],
    ),
    "a retry of a payment": (
        "[codes.AI_PAYMENT_FAILED]\nretry = 'backoff'",
        2,
        ["AI_PAYMENT_FAILED.retry", "forbids retries", '"none"'],
    ),
    "a payment that may be retried": (
        "[codes.AI_PAYMENT_FAILED]\nforbids_retry = false",
        2,
        ["forbids retries in the shipped list", "remove forbids_retry"],
    ),
    "a payment of the user's": (
        f"[codes.AI_PAY_DECLINED]{CODE}",
        1,
        ["AI_PAY_DECLINED", "payment", "forbids_retry = true"],
    ),
    "a retry of what is not retryable": (
        "[codes.PROVIDER_REJECTED]\nretry = 'backoff'\nfallback = 'smaller_model'",
        2,
        ["PROVIDER_REJECTED.retry", "not retryable", "retryable to true"],
    ),
    "a third step that leads nowhere": (
        "[codes.AI_INFRA_TIMEOUT]\nfallback = 'refuse'",
        0,
        ["'backoff' leads to the fallback route", "is refuse", "smaller_model"],
    ),
    "a param of another action": (
        "[fallback.refuse]\nqueue = 'x'",
        2,
        ["fallback.refuse.queue", "means nothing to the action refuse"],
    ),
    "a param that lacks": (
        "[fallback.refuse]\naction = 'truncate'",
        0,
        ["fallback.refuse lacks max_tokens", "truncate needs"],
    ),
    "two thresholds": (
        "[alert.overload_rate]\ncount = 3\nrate = 0.5",
        0,
        ["alert.overload_rate has both count and rate", "one of them"],
    ),
    "calls beside a count": (
        "[alert.circuit_open]\nmin_calls = 3",
        2,
        ["min_calls", "goes with a rate only"],
    ),
    "a rate over 1": ("[alert.overload_rate]\nrate = 5", 2, ["rate", "less than or equal to 1"]),
    "an unknown channel": (
        "[alert.overload_rate]\nchannels = ['fax']",
        2,
        ["channels 1 is 'fax'", "'webhook'"],
    ),
    "one language only": (
        f"[codes.AI_NEW]{CODE}".replace('message_en = "A test"', ""),
        1,
        ["codes.AI_NEW lacks message_en", "user_sees = false"],
    ),
    "a message that nobody sees": (
        "[codes.AI_CRM_SYNC_LOST]\nmessage_en = 'x'",
        2,
        ["message_en", "never shown"],
    ),
    "a pause after never": (
        "[codes.OVERLOAD]\npauses = true",
        2,
        ["OVERLOAD pauses after 0", "trips_after"],
    ),
    "two times for one wait": (
        "[codes.AI_ORDER_NOT_FOUND.state]\nkind = 'awaiting_input'\nttl_s = 60",
        3,
        ["state.ttl_s is 60", "take 30 s", "remove one"],
    ),
    "a flag that wakes nobody": (
        "trips_alert = 'need_person'",
        1,
        ["no alert policy 'need_person'", "did you mean needs_person?"],
    ),
    "a flag that is told at the third": (
        "trips_alert = 'needs_person'\n[alert.needs_person]\ncount = 3",
        1,
        ["a flag is raised once", "count = 1"],
    ),
    "a flag that is told by a rate": (
        "trips_alert = 'overload_rate'",
        1,
        ["a flag is raised once", "count = 1"],
    ),
    "a flag that the user made wait": (
        "[alert.needs_person]\nrate = 0.5",
        2,
        ["a flag is raised once", "alert.needs_person"],
    ),
    "a misspelt template": (
        "[fallback.guide]\ntemplate = 'guid'",
        2,
        ["no template 'guid'", "did you mean guide?"],
    ),
    "a fallback route that never comes": (
        "[retry.backoff]\nfallback_route_after_ms = 29_600",
        2,
        ["fallback_route_after_ms", "stage evaluation has a budget of 30000 ms", "never be asked"],
    ),
    "a rule to nowhere": (
        "[[match]]\nto = 'OVERLOD'\nexception = 'X'",
        2,
        ["no code 'OVERLOD'", "did you mean OVERLOAD?"],
    ),
    "a rule that asks for nothing": (
        "[[match]]\nto = 'OVERLOAD'\nprovider = 'openai'",
        1,
        ["match 1 asks for nothing"],
    ),
    "a misspelt provider": (
        "[[match]]\nto = 'OVERLOAD'\nprovider = 'opnai'\nupstream_code = 'x'",
        3,
        ["'opnai'", "did you mean openai?"],
    ),
    "no regular expression": (
        "[[match]]\nto = 'OVERLOAD'\ntext = '('",
        3,
        ["match 1.text", "no regular expression"],
    ),
    "a range that runs backwards": (
        "[[match]]\nto = 'OVERLOAD'\nupstream_status = '599-500'",
        3,
        ["599-500", "upwards"],
    ),
    "a code that is itself already": (
        "[[match]]\nto = 'OVERLOAD'\ncode = 'DRAINING'",
        3,
        ["DRAINING is a code of this list", "remove it"],
    ),
    "a name of no policy": ("[retry.none]\ndelays_ms = [100]", 1, ["retry.none", "no policy"]),
    "one code twice": (
        f"[codes.AI_NEW]{CODE}\n[codes.AI_NEW]{CODE}",
        13,
        ["codes.AI_NEW stands twice", "keep one"],
    ),
    "one field twice": (
        "[codes.OVERLOAD]\nstatus = 503\nstatus = 504",
        3,
        ["a name (Cannot overwrite a value) stands twice", "keep one"],
    ),
    "no TOML": ("[codes.OVERLOAD]\nstatus = \n", 2, ["no TOML", "column 10", "correct it"]),
    "a section that is no table": ("codes = 1", 1, ["codes is no table", "[codes.NAME]"]),
    "an entry that is no table": ("codes.OVERLOAD = 1", 1, ["codes.OVERLOAD is no table"]),
    "rules that are no array": ("[match]\nto = 'OVERLOAD'", 1, ["match is no array"]),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_a_fault_is_told_with_file_line_and_fix(fault: str) -> None:
    text, line, parts = REFUSED[fault]
    said = [each for each in faults(text) if all(part in each for part in parts)]
    assert len(said) == 1, faults(text)
    if line:
        assert said[0].startswith(f"{OWN}:{line}: ")
    assert re.match(r"[\w/.]+:\d+: ", said[0])


def test_all_faults_are_told_at_once_in_the_order_of_the_file() -> None:
    texts = [REFUSED[name][0] for name in ("wrong level", "unused policy", "a rule to nowhere")]
    said = faults("\n".join(texts))
    assert len(said) == 3
    lines = [int(each.split(":")[1]) for each in said]
    assert lines == sorted(lines)


def test_a_broken_entry_does_not_hide_that_it_names_a_missing_policy() -> None:
    said = faults("[codes.OVERLOAD]\nlevel = 'L4'\nfallback = 'nowhere'")
    assert any("L4" in each for each in said)
    assert any("nowhere" in each for each in said)


def test_waits_and_one_attempt_must_fit_into_each_stage() -> None:
    stages: dict[str, Any] = {
        "evaluation": {"timeout_ms": 20_000, "budget_ms": 20_400},
        "chat": {"timeout_ms": 9_000, "budget_ms": 9_700, "retry_delays_ms": [700]},
    }
    settings = Settings(stages=stages)
    merged("", settings)  # exactly fits
    said = faults("[retry.backoff]\ndelays_ms = [800, 800]\n", settings)
    assert len(said) == 2
    evaluation, chat = sorted(said, key=lambda each: "stage chat" in each)
    assert "800 ms, and one attempt of stage chat takes up to 9000 ms: together 9800" in chat
    assert "wait at most 700 ms in all, or raise stages.chat.budget_ms to 9800" in chat
    assert evaluation.startswith(f"{OWN}:2: retry.backoff waits 800 + 800 ms")
    assert "stages.evaluation.budget_ms to 21600" in evaluation


def test_a_stage_without_retries_asks_for_no_time() -> None:
    settings = Settings()
    checklist = merged("[retry.backoff]\ndelays_ms = [9_000, 900]\n", settings)
    code = checklist.code("AI_INFRA_TIMEOUT")
    assert checklist.delays_ms(code, settings.stage("extraction")) == ()
    assert checklist.delays_ms(code, settings.stage("evaluation")) == (9_000, 900)


def test_a_policy_that_the_user_s_file_puts_out_of_use_is_no_fault() -> None:
    checklist = merged("[codes.CIRCUIT_OPEN]\nalert = 'none'")
    assert "circuit_open" not in checklist.alert_policies


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    def said(file: Path) -> str:
        with pytest.raises(SettingsError) as raised:
            load_checklist(Settings(checklist_file=str(file)))
        return str(raised.value)

    assert said(tmp_path / "none.toml").startswith(f"{tmp_path}/none.toml is no file: correct")
    assert "is no file" in said(tmp_path)
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"# one\n# f\xfcnf\n")
    assert said(latin) == f"{latin}:2: is not UTF-8: save the file so."


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "bom.toml"
    file.write_text("\ufeff[codes.OVERLOAD]\nstatus = 429\n", encoding="utf-8")
    checklist = load_checklist(Settings(checklist_file=str(file)))
    assert checklist.code("OVERLOAD").status == 429


def test_the_templates_that_a_list_may_misspell_are_those_that_there_are() -> None:
    assert set(TEMPLATES) == {name for name, _ in templates.TEMPLATES}
