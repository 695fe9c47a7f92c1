"""Settings in a Flask app's configuration: over the environment, and named where they are wrong."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from flightsvc.app import FlightSvc
from flightsvc.errors import SettingsError
from flightsvc.settings import Settings, load_settings


def refused(config: dict[str, Any], environ: dict[str, str] | None = None) -> str:
    with pytest.raises(SettingsError) as refusal:
        load_settings(environ or {}, config)
    return str(refusal.value)


def test_python_values_and_texts() -> None:
    settings = load_settings(
        {},
        {
            "SECRET_KEY": "the host's",
            "FLIGHTSVC_MODE": "local",
            "FLIGHTSVC_GRACE_S": 12.5,
            "FLIGHTSVC_LOG_CONTENT": True,
            "FLIGHTSVC_DATA_DIR": Path("/srv/hr"),
            "FLIGHTSVC_REDIS_URL": None,  # as os.environ.get() says where nothing is set
            "FLIGHTSVC_API_TOKENS": {"a-token": "acme"},
            "FLIGHTSVC_ALERT_EMAIL_TO": [],
            "FLIGHTSVC_CUSTOM_STAGES": ("grading",),
            "FLIGHTSVC_STAGES": {"grading": {"budget_ms": 40_000, "retry_delays_ms": (100,)}},
            "FLIGHTSVC_STAGES__CHAT__CONCURRENCY": "7",
        },
    )

    assert (settings.mode, settings.grace_s, settings.log_content) == ("local", 12.5, True)
    assert (settings.data_dir, settings.redis_url) == ("/srv/hr", "")
    assert dict(settings.api_tokens) == {"a-token": "acme"}
    assert settings.stage("grading").budget_ms == 40_000
    assert settings.stage("grading").retry_delays_ms == (100,)
    assert settings.stage("chat").concurrency == 7


def test_over_the_environment_over_the_file(tmp_path: Path) -> None:
    toml = tmp_path / "flightsvc.toml"
    toml.write_text(
        'namespace = "file"\nprovider = "simulated"\nheartbeat_ms = 1500\n'
        "[stages.evaluation]\nqueue = 3\nconcurrency = 3\nbudget_ms = 33000\n"
    )
    environ = {
        "FLIGHTSVC_NAMESPACE": "environment",
        "FLIGHTSVC_MODE": "distributed",
        "FLIGHTSVC_STAGES__EVALUATION__CONCURRENCY": "4",
        "FLIGHTSVC_STAGES__EVALUATION__QUEUE": "4",
    }
    config = {
        "FLIGHTSVC_CONFIG": str(toml),
        "FLIGHTSVC_NAMESPACE": "app",
        "FLIGHTSVC_STAGES": {"evaluation": {"queue": 5}},
    }

    settings = load_settings(environ, config)

    stage = settings.stage("evaluation")
    assert (settings.namespace, settings.mode) == ("app", "distributed")
    assert settings.heartbeat_ms == 1500
    assert (stage.queue, stage.concurrency, stage.budget_ms) == (5, 4, 33_000)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (
            {"FLIGHTSVC_NAMESPAC": "x"},
            "FLIGHTSVC_NAMESPAC in app.config is no setting: did you mean FLIGHTSVC_NAMESPACE?",
        ),
        ({"FLIGHTSVC_GRACE_S": "soon"}, "FLIGHTSVC_GRACE_S in app.config is 'soon': must be"),
        (
            {"FLIGHTSVC_GRACE_S": timedelta(seconds=3)},
            "FLIGHTSVC_GRACE_S in app.config is of type timedelta",
        ),
        ({"FLIGHTSVC_API_TOKENS": {"t": {1, 2}}}, "FLIGHTSVC_API_TOKENS in app.config is of type"),
        ({"FLIGHTSVC_STAGES": "{"}, "FLIGHTSVC_STAGES in app.config is not JSON"),
        (
            {"FLIGHTSVC_STAGES": {"chat": {"queue": -1}}},
            "FLIGHTSVC_STAGES (chat.queue) in app.config is -1: must be",
        ),
        ({"flightsvc_mode": "local"}, "flightsvc_mode in app.config is not read"),
        ({"FLIGHTSVC_WORKERS": 4}, "FLIGHTSVC_WORKERS in app.config comes too late"),
        (
            {"FLIGHTSVC_TAKEOVER_DETECT_MS": 500},
            "FLIGHTSVC_TAKEOVER_DETECT_MS in app.config",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_wrong_is_named_as_it_was_written(config: dict[str, Any], told: str) -> None:
    assert told in refused(config)


def test_all_faults_of_both_are_told_at_once() -> None:
    told = refused({"FLIGHTSVC_MODUS": "x"}, {"FLIGHTSVC_PROVIDR": "x"})

    assert told.startswith("2 settings are wrong:")
    assert "FLIGHTSVC_MODUS in app.config" in told
    assert "FLIGHTSVC_PROVIDR is no setting" in told


def test_the_whole_environment_may_be_copied_into_it() -> None:
    environ = {"FLIGHTSVC_WORKERS": "3", "FLIGHTSVC_MODE": "local", "PATH": "/bin"}

    assert load_settings(environ, environ) == load_settings(environ)


def test_an_extension_reads_the_configuration_of_its_app(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLIGHTSVC_NAMESPACE", "environment")
    app = Flask("host")
    app.config.update(FLIGHTSVC_MODE="local", FLIGHTSVC_NAMESPACE="app")
    service = FlightSvc()

    service.init_app(app)

    assert app.extensions["flightsvc"] is service
    assert (service.settings.namespace, service.settings.mode) == ("app", "local")


def test_apps_of_one_extension_agree() -> None:
    service = FlightSvc()
    for name in ("first", "second"):
        app = Flask(name)
        app.config.update(FLIGHTSVC_MODE="local", FLIGHTSVC_NAMESPACE="shared")
        service.init_app(app)
        service.init_app(app)  # once more does no harm
    other = Flask("third")
    other.config.update(FLIGHTSVC_MODE="local", FLIGHTSVC_NAMESPACE="other")

    with pytest.raises(SettingsError, match=r"third has other settings.*FLIGHTSVC_NAMESPACE\."):
        service.init_app(other)
    FlightSvc(other)


def test_after_its_end_an_extension_serves_another_app() -> None:
    service = FlightSvc()
    for namespace in ("one-test", "another-test"):
        app = Flask("host")
        app.config.update(FLIGHTSVC_MODE="local", FLIGHTSVC_NAMESPACE=namespace)
        service.init_app(app)
        assert service.settings.namespace == namespace
        assert service.flights.coordination == "off"
        service.close()
        assert service.draining


def test_settings_come_from_one_place() -> None:
    app = Flask("host")
    app.config["FLIGHTSVC_NAMESPACE"] = "app"

    with pytest.raises(SettingsError, match=r"FLIGHTSVC_NAMESPACE in app\.config of host"):
        FlightSvc(app, Settings(mode="local"))


def test_one_app_has_one_extension() -> None:
    app = Flask("host")
    FlightSvc(app, Settings(mode="local"))

    with pytest.raises(SettingsError, match="already"):
        FlightSvc(app, Settings(mode="local"))
