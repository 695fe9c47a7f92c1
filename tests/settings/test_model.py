from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from pydantic import ValidationError

from flightsvc.settings import STAGE_DEFAULTS, Settings, StageSettings


def test_the_defaults_are_those_of_the_design() -> None:
    settings = Settings()
    rows = {
        name: (
            stage.timeout_ms,
            stage.budget_ms,
            stage.concurrency,
            stage.retry_delays_ms,
            stage.result_ttl_s,
            stage.failure_ttl_s,
            stage.l1_ttl_s,
            stage.session_lock,
        )
        for name, stage in settings.stages.items()
    }
    usual = (20_000, 30_000, 30, (100, 300), 600, 60, 30, False)
    assert rows == {
        "default": usual,
        "evaluation": usual,
        "follow_up": (20_000, 30_000, 20, (100, 300), 180, 30, 30, False),
        "extraction": (60_000, 60_000, 8, (), 1_800, 60, 30, True),
        "demeanor": (20_000, 20_000, 6, (), 900, 60, 0, True),
        "chat": (120_000, 180_000, 200, (100, 300), 60, 10, 0, False),
    }


def test_a_library_users_settings_read_no_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    file = tmp_path / "flightsvc.toml"
    file.write_text("workers = 9")
    monkeypatch.setenv("FLIGHTSVC_CONFIG", str(file))
    monkeypatch.setenv("FLIGHTSVC_WORKERS", "7")
    monkeypatch.setenv("FLIGHTSVC_NONSENSE", "7")
    monkeypatch.setenv("WORKERS", "7")
    assert Settings().workers == Settings.checked().workers == 2


@pytest.mark.parametrize("attribute", ["workers", "stages", "api_tokens"])
def test_settings_do_not_change(attribute: str) -> None:
    with pytest.raises(ValidationError):
        setattr(Settings(), attribute, None)


def test_nor_do_the_stages_and_tokens_in_them() -> None:
    settings = Settings(api_tokens={"t": "a"})
    tokens: Any = settings.api_tokens
    changes = [
        lambda: tokens.update(x="y"),
        lambda: tokens.pop("t"),
        lambda: tokens.popitem(),
        lambda: tokens.clear(),
        lambda: tokens.setdefault("x", "y"),
        lambda: tokens.__setitem__("x", "y"),
        lambda: tokens.__delitem__("t"),
        lambda: tokens.__ior__({"x": "y"}),
        lambda: settings.stages.__setitem__("x", StageSettings()),
    ]
    for change in changes:
        with pytest.raises(TypeError, match="do not change"):
            change()
    assert settings.api_tokens == {"t": "a"}
    with pytest.raises(ValidationError):
        settings.stage("chat").queue = 5


def test_settings_can_be_copied_pickled_and_made_again() -> None:
    settings = Settings(api_tokens={"t": "a"}, stages={"evaluation": StageSettings(result_ttl_s=5)})
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert copy.deepcopy(settings) == settings
    assert settings.model_copy() == settings
    assert Settings(**settings.model_dump()) == settings


def test_secrets_are_not_shown() -> None:
    settings = Settings(
        api_tokens={"s3cr3t": "tenant"},
        openai_api_key="s3cr3t",  # type: ignore[arg-type]
        provider="openai",
        openai_model="m",
        openai_base_url="https://h/s3cr3t/v1",
        redis_url="redis://:s3cr3t@h",
    )
    assert "s3cr3t" not in repr(settings) + str(settings)


def test_a_stage_is_laid_over_its_own_defaults() -> None:
    settings = Settings.checked(stages={"follow_up": {"queue": 7}, "default": {"queue": 8}})
    assert settings.stage("follow_up").queue == 7
    assert settings.stage("follow_up").concurrency == 20
    assert settings.stage("evaluation").queue == 30
    assert settings.stage("anything else").queue == 8


@pytest.mark.parametrize("default", [{"queue": 8}, StageSettings(queue=8)])
def test_a_users_own_stage_starts_from_the_users_default(default: Any) -> None:
    settings = Settings.checked(
        custom_stages=["scoring", "ranking"],
        stages={"default": default, "scoring": {"concurrency": 3, "result_ttl_s": 5}},
    )
    scoring = settings.stage("scoring")
    assert (scoring.queue, scoring.concurrency, scoring.l1_ttl_s) == (8, 3, 5)
    assert settings.stage("ranking").queue == 8


def test_memory_never_outlives_redis_without_being_told() -> None:
    settings = Settings.checked(stages={"evaluation": {"result_ttl_s": 4}})
    assert settings.stage("evaluation").l1_ttl_s == 4
    assert StageSettings(result_ttl_s=4).l1_ttl_s == 4


def test_a_waiters_patience() -> None:
    settings = Settings.checked(stages={"chat": {"wait_ms": 300_000}})
    assert settings.wait_ms("evaluation") == 37_000
    assert settings.wait_ms("chat") == 300_000
    for name in STAGE_DEFAULTS:
        stage = settings.stage(name)
        assert settings.wait_ms(name) >= stage.budget_ms + settings.takeover_detect_ms
