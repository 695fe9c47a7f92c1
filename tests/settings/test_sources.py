from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from flightsvc.errors import SettingsError
from flightsvc.settings import Settings, load_settings

SECRET = "s3cr3t"
KUBERNETES = {
    "FLIGHTSVC_SERVICE_HOST": "10.0.0.1",
    "FLIGHTSVC_SERVICE_PORT": "8000",
    "FLIGHTSVC_SERVICE_PORT_HTTP": "8000",
    "FLIGHTSVC_PORT": "tcp://10.0.0.1:8000",
    "FLIGHTSVC_PORT_8000_TCP": "tcp://10.0.0.1:8000",
    "FLIGHTSVC_PORT_8000_TCP_PROTO": "tcp",
    "FLIGHTSVC_PORT_8000_TCP_PORT": "8000",
    "FLIGHTSVC_PORT_8000_TCP_ADDR": "10.0.0.1",
    "FLIGHTSVC_STATSD_SERVICE_HOST": "10.0.0.2",
    "FLIGHTSVC_STATSD_PORT": "udp://10.0.0.2:8125",
}


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    return tmp_path / "flightsvc.toml"


def env(**values: str) -> dict[str, str]:
    return {f"FLIGHTSVC_{name}": value for name, value in values.items()}


def refused(environ: Mapping[str, str]) -> str:
    with pytest.raises(SettingsError) as error:
        load_settings(environ)
    assert SECRET not in str(error.value)
    assert SECRET not in str(error.value.__context__)
    return str(error.value)


def test_no_environment_means_the_defaults() -> None:
    assert load_settings({}) == Settings()


def test_others_variables_do_not_matter() -> None:
    others = {"WORKERS": "7", "_FLIGHTSVC_EMBEDDED_URL": "x"}
    assert load_settings({**others, **KUBERNETES, **env(TEST_STRICT="1", CONFIG="")}) == Settings()


def test_a_variable_in_small_letters_is_refused_not_ignored() -> None:
    with pytest.raises(SettingsError, match=r"flightsvc_workers.*FLIGHTSVC_WORKERS"):
        load_settings({"flightsvc_workers": "7"})


def test_two_equal_tokens_are_refused_and_not_shown() -> None:
    with pytest.raises(SettingsError, match=r"FLIGHTSVC_API_TOKENS.*one name twice") as caught:
        load_settings(env(API_TOKENS='{"s3cr3t": "a", "s3cr3t": "b"}'))
    assert "s3cr3t" not in str(caught.value)


def test_the_process_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("FLIGHTSVC_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("FLIGHTSVC_WORKERS", "7")
    assert load_settings().workers == 7


def test_every_kind_of_variable() -> None:
    settings = load_settings(
        env(
            BIND="0.0.0.0:80",
            WORKERS="7",
            GRACE_S="12.5",
            API_TOKENS='{"Tok-1": "Tenant A", "t2": "b"}',
            OPENAI_API_KEY=SECRET,
            CUSTOM_STAGES='["scoring"]',
            STAGES__EVALUATION__TIMEOUT_MS="5000",
            STAGES__FOLLOW_UP__RETRY_DELAYS_MS="[200]",
            STAGES__FOLLOW_UP__SESSION_LOCK="true",
            STAGES__SCORING__QUEUE="3",
            STAGES__CHAT='{"queue": 4, "concurrency": 5}',
            STAGES__CHAT__QUEUE="6",
        )
    )
    assert (settings.bind, settings.workers, settings.grace_s) == ("0.0.0.0:80", 7, 12.5)
    assert settings.api_tokens == {"Tok-1": "Tenant A", "t2": "b"}
    assert settings.openai_api_key.get_secret_value() == SECRET
    assert settings.stage("evaluation").timeout_ms == 5_000
    assert settings.stage("evaluation").budget_ms == 30_000
    assert settings.stage("follow_up").retry_delays_ms == (200,)
    assert settings.stage("follow_up").session_lock is True
    assert settings.stage("scoring").queue == 3
    assert (settings.stage("chat").queue, settings.stage("chat").concurrency) == (6, 5)


def test_environment_over_file_over_defaults(toml: Path) -> None:
    toml.write_text(
        """
        workers = 3
        grace_s = 9
        api_tokens = { old = "a", both = "a" }
        custom_stages = ["scoring"]
        [stages.evaluation]
        queue = 1
        concurrency = 2
        [stages.scoring]
        retry_delays_ms = []
        """
    )
    settings = load_settings(
        env(
            CONFIG=str(toml),
            WORKERS="4",
            API_TOKENS='{"both": "b"}',
            STAGES__EVALUATION__QUEUE="5",
        )
    )
    assert (settings.workers, settings.grace_s, settings.heartbeat_ms) == (4, 9, 2_000)
    evaluation = settings.stage("evaluation")
    assert (evaluation.queue, evaluation.concurrency, evaluation.budget_ms) == (5, 2, 30_000)
    assert settings.stage("scoring").retry_delays_ms == ()
    assert settings.api_tokens == {"both": "b"}, "a token that is gone must not stay in force"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("WORKER", "FLIGHTSVC_WORKERS"),
        ("Workers", "FLIGHTSVC_WORKERS"),
        ("REDIS", "FLIGHTSVC_REDIS_URL"),
        ("OPENAI_BASEURL", "FLIGHTSVC_OPENAI_BASE_URL"),
        ("HEARTBEAT_S", "FLIGHTSVC_HEARTBEAT_MS"),
        ("STAGES__EVALUATION__TIMOUT_MS", "FLIGHTSVC_STAGES__EVALUATION__TIMEOUT_MS"),
        ("STAGES__EVALUTION__TIMEOUT_MS", "FLIGHTSVC_STAGES__EVALUATION__TIMEOUT_MS"),
        ("STAGES__FOLLOWUP__QUEUE", "FLIGHTSVC_STAGES__FOLLOW_UP__QUEUE"),
        ("STAGES_EVALUATION_QUEUE", "FLIGHTSVC_STAGES__EVALUATION__QUEUE"),
    ],
)
def test_an_unknown_variable_is_named_with_what_was_meant(name: str, meant: str) -> None:
    told = refused(env(**{name: SECRET}))
    assert told.startswith(f"FLIGHTSVC_{name} is no setting: did you mean {meant}?")


@pytest.mark.parametrize("name", ["FOO", "X", "", "PORT"])
def test_an_unknown_variable_that_is_like_none(name: str) -> None:
    assert refused(env(**{name: "1"})) == f"FLIGHTSVC_{name} is no setting: correct or remove it."


def test_an_unknown_stage_says_how_to_name_ones_own() -> None:
    told = refused(env(STAGES__ZZ__QUEUE="1"))
    assert "FLIGHTSVC_CUSTOM_STAGES" in told


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("worker = 2", ["worker in {file}", "did you mean workers?"]),
        ("[flightsvc]\nworkers = 2", ["flightsvc in {file}", "no setting"]),
        ("[stages.evalution]\nqueue = 2", ["stages.evalution.queue in {file}", "custom_stages"]),
        ("[stages.evalution]", ["stages.evalution in {file}", "did you mean stages.evaluation?"]),
        ("[stages.chat]\nqueu = 2", ["stages.chat.queu in {file}", "stages.chat.queue?"]),
        ("workers = 'x'", ["workers in {file} is 'x': must be a valid integer (default 2)"]),
        ("[stages]\nchat = 5", ["stages.chat in {file} is 5"]),
        ("stages = 5", ["stages in {file} is 5"]),
        ("heartbeat_ms = 5000", ["heartbeat_ms in {file} (5000)", "FLIGHTSVC_TAKEOVER_DETECT_MS"]),
        ("custom_stages = 5", ["custom_stages in {file} is 5"]),
        (f"redis_url = 'http://{SECRET}'", ["redis_url in {file} must begin with redis://"]),
        (f"[api_tokens]\n{SECRET} = 5", ["api_tokens in {file} must name a tenant"]),
        ("workers = \n", ["{file}, which is not TOML", "line 1"]),
        ("workers = 1\nworkers = 2\n", ["{file}, which is not TOML", "line 2"]),
    ],
)
def test_a_fault_in_the_file_names_file_and_key(toml: Path, text: str, named: list[str]) -> None:
    toml.write_text(text)
    told = refused(env(CONFIG=str(toml)))
    for part in named:
        assert part.format(file=toml) in told


def test_a_file_that_cannot_be_read_is_named(toml: Path, tmp_path: Path) -> None:
    assert f"{toml}, which is no file" in refused(env(CONFIG=str(toml)))
    assert f"{tmp_path}, which is no file" in refused(env(CONFIG=str(tmp_path)))
    toml.write_bytes(b'bind = "\xff"')
    assert f"{toml}, which is not UTF-8" in refused(env(CONFIG=str(toml)))
    loop = tmp_path / "loop.toml"
    loop.symlink_to(loop)
    assert f"FLIGHTSVC_CONFIG names {loop}, which" in refused(env(CONFIG=str(loop)))
    long = "x" * 300
    assert f"FLIGHTSVC_CONFIG names {long}, which" in refused(env(CONFIG=long))


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("WORKERS", "0", " is '0': must be greater than or equal to 1 (default 2)"),
        ("WORKERS", "", " is '': must be a valid integer (default 2)"),
        ("WORKERS", "2.5", " is '2.5': must be a valid integer (default 2)"),
        ("MODE", "hybird", " is 'hybird': must be 'distributed', 'hybrid' or 'local'"),
        ("GRACE_S", "nan", " is 'nan': must be a finite number (default 25)"),
        ("STAGES__CHAT__QUEUE", "-1", " is '-1': must be greater than or equal to 0 (default 30)"),
        ("STAGES__CHAT__SESSION_LOCK", "x", " is 'x': must be a valid boolean (default False)"),
        ("STAGES", '{"chat": {"queue": "x"}}', " (chat.queue) is 'x': must be a valid integer"),
        ("STAGES__CHAT", '{"queue": "x"}', " (queue) is 'x': must be a valid integer"),
        ("STAGES__CHAT", '{"queu": 5}', " (queu) is no setting: did you mean "),
        ("STAGES", "[]", " is []: must be a valid dictionary"),
        ("STAGES__CHAT", "5", " is 5: must be a valid dictionary"),
        ("STAGES__CHAT__RETRY_DELAYS_MS", "100,300", " is not JSON (Extra data, column 4): write"),
        ("STAGES__CHAT__RETRY_DELAYS_MS", "", " is not JSON (Expecting value, column 1): write"),
        ("STAGES__CHAT__RETRY_DELAYS_MS", "[100, 20]", ", value 2, is 20: must be greater than"),
        ("STAGES__CHAT__RETRY_DELAYS_MS", "100", " is 100: must be a valid tuple"),
        ("CUSTOM_STAGES", "scoring", " is not JSON (Expecting value, column 1): write it like"),
        ("CUSTOM_STAGES", '["A b"]', ", value 1, is 'A b': must match pattern"),
        ("CUSTOM_STAGES", "[5]", ", value 1, is 5: must be a valid string"),
        ("API_TOKENS", SECRET, ' is not JSON (Expecting value, column 1): write it like {"token"'),
        ("API_TOKENS", f'["{SECRET}"]', " must be an object of tokens and tenants"),
        ("API_TOKENS", f'{{"{SECRET}": ""}}', " must name a tenant for each token"),
        ("REDIS_URL", f"rds://:{SECRET}@h", " must begin with redis://"),
        ("BIND", "0.0.0.0:80", " (0.0.0.0:80) can be reached from other machines, but FLIGHTSVC_"),
        ("BIND", "here", " cannot be read: 'here' is no address. Write `host:port`"),
    ],
)
def test_a_wrong_value_is_told_by_its_variable(name: str, value: str, told: str) -> None:
    assert refused(env(**{name: value})).startswith(f"FLIGHTSVC_{name}{told}")


def test_tokens_in_variable_names_are_refused_and_not_shown() -> None:
    told = refused(env(**{f"API_TOKENS__{SECRET}": "tenant"}))
    assert told.startswith("FLIGHTSVC_API_TOKENS__… is no setting")


def test_contradictions_name_each_setting_where_it_was_written(toml: Path) -> None:
    toml.write_text("[stages.evaluation]\ntimeout_ms = 29000\nretry_delays_ms = [1000, 2000]")
    told = refused(env(CONFIG=str(toml), STAGES__EVALUATION__TIMEOUT_MS="28000"))
    assert "FLIGHTSVC_STAGES__EVALUATION__TIMEOUT_MS (28000)" in told
    assert f"stages.evaluation.retry_delays_ms in {toml} (together 3000)" in told
    assert "FLIGHTSVC_STAGES__EVALUATION__BUDGET_MS (30000)" in told


def test_all_faults_are_told_at_once(toml: Path) -> None:
    toml.write_text("worker = 2")
    told = refused(env(CONFIG=str(toml), WORKER="2", API_TOKENS="x"))
    assert told.startswith("3 settings are wrong:\n  - ")
