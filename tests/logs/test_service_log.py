"""The log of the service under gunicorn: what an operator's programs would read."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent.pool import Pool

from flightsvc.model_server.process import ModelServerProcess
from tests.logs.reading import read
from tests.processes import wait_until
from tests.service.gunicorn_master import Master
from tests.support.http_receiver import Answer, HttpReceiver
from tests.support.service import Reply, Service, post_json
from tests.web.running import ACME, MODEL, TOKENS, flight_id, openai, path

JUDGEMENT = {
    "score": 61,
    "logic_ok": True,
    "missing_points": [],
    "feedback": "Good.",
    "follow_up_needed": False,
    "follow_up_question": None,
}
ASKED = {"question_number": 1, "question": "Qwertz question?", "answer": "Qwertz answer."}


def parent(number: int) -> str:
    return f"00-{number:032x}-{number:016x}-01"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServerProcess]:
    with ModelServerProcess() as one:
        yield one


@pytest.fixture(scope="module")
def service(model: ModelServerProcess) -> Iterator[Service]:
    env = {**openai(model), "FLIGHTSVC_API_TOKENS": json.dumps(TOKENS)}
    with Service(env, workers=2) as one:
        yield one


def lines_of(service: Service, session: str, event: str = "request") -> list[dict[str, Any]]:
    return [line for line in read(service.log(), event) if line["session_id"] == session]


def test_every_caller_has_a_line_of_its_own_and_the_call_that_failed_one_for_all(
    service: Service, model: ModelServerProcess
) -> None:
    model.script([{"match": {}, "behave": {"gate": "end", "status": 500}}])

    def post(number: int) -> Any:
        headers = {**ACME, "traceparent": parent(number)}
        return service.post(path("together"), ASKED, headers=headers)

    first = gevent.spawn(post, 1)
    model.until(open_calls=1)
    waiting = [first]
    where = "/v1/flights/" + flight_id("together", ASKED)
    while not service.get(where, headers=ACME).json()["followers"]:  # until both workers have some
        assert len(waiting) < 400
        waiting.append(gevent.spawn(post, len(waiting) + 1))
    gevent.sleep(0.5)  # those that the other worker has not taken yet
    model.open_gate("end")
    replies = [each.get() for each in waiting]

    requests = lines_of(service, "together")
    (failure,) = lines_of(service, "together", "failure")
    assert {reply.status for reply in replies} == {503}
    assert {line["trace_id"] for line in requests} == {
        f"{n:032x}" for n in range(1, len(replies) + 1)
    }
    assert {line["flight_id"] for line in requests} == {failure["flight_id"]}
    assert {(line["status"], line["code"]) for line in requests} == {(503, "PROVIDER_UNAVAILABLE")}
    assert {line["worker"] for line in requests} == {"0", "1"}
    assert failure["trace_id"] == f"{1:032x}"
    assert (failure["code"], failure["role"]) == ("PROVIDER_UNAVAILABLE", "owner")
    assert failure["fence"] > 0
    by_trace = {line["trace_id"]: line["span_id"] for line in requests}
    for reply in replies:
        _, trace, span, flags = reply.headers["traceparent"].split("-")
        assert (by_trace[trace], flags) == (span, "01")
    assert service.get(where, headers=ACME).json()["flight_id"] == failure["flight_id"]


def test_lines_say_what_the_answers_head_says_and_nothing_of_what_was_said(
    service: Service, model: ModelServerProcess
) -> None:
    model.script([{"match": {}, "behave": {}}])
    replies = [service.post(path("twice"), ASKED, headers=ACME) for _ in range(4)]
    service.post(path("twice"), {**ASKED, "Qwertz": 1}, headers=ACME)
    service.post(path("Qwertz%20is%20no%20session"), ASKED, headers=ACME)
    service.post(path("unknown"), ASKED, headers={"Authorization": "Bearer Qwertz"})
    service.get("/Qwertz?Qwertz", headers={"Qwertz": "Qwertz", "traceparent": "Qwertz"})
    service.get("/healthz")

    lines = lines_of(service, "twice")
    told = [reply.headers for reply in replies]
    assert [line["role"] for line in lines[:4]] == [head["flight-role"] for head in told]
    assert [str(line["fence"]) for line in lines[:4]] == [head["flight-fence"] for head in told]
    assert [line["flight_id"] for line in lines[:4]] == [head["flight-id"] for head in told]
    assert lines[4]["code"] == "INPUT_INVALID"
    assert {line["tenant"] for line in lines} == {"acme"}
    assert len({line["input_hash"] for line in lines[:4]}) == 1
    (refused,) = lines_of(service, "unknown")
    assert (refused["status"], refused["code"], refused["tenant"]) == (
        401,
        "UNAUTHENTICATED",
        None,
    )
    assert [line["route"] for line in read(service.log(), "request")][-1] == "none"
    log = service.log()
    assert "Qwertz" not in log
    assert "token-acme" not in log
    assert "sk-model-secret" not in log
    assert "healthz" not in log


def test_the_trace_reaches_the_model() -> None:
    def answer(_: object) -> Answer:
        message = {"role": "assistant", "content": json.dumps(JUDGEMENT)}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        body = {"object": "chat.completion", "model": MODEL, "choices": [choice]}
        return Answer(body=json.dumps(body).encode(), headers={"Content-Type": "application/json"})

    with HttpReceiver(answer) as model:
        env = {
            "FLIGHTSVC_PROVIDER": "openai",
            "FLIGHTSVC_OPENAI_BASE_URL": model.url + "/v1",
            "FLIGHTSVC_OPENAI_MODEL": MODEL,
            "FLIGHTSVC_MODE": "local",
        }
        with Service(env, workers=1) as service:
            headers = {"traceparent": parent(7), "tracestate": "rojo=1,congo=2"}
            first = service.post(path("s"), ASKED, headers=headers)
            second = service.post(path("other"), ASKED)

    assert (first.status, second.status) == (200, 200)
    sent = [request.headers for request in model.received]
    assert sent[0]["traceparent"].startswith(f"00-{7:032x}-")
    assert sent[0]["traceparent"] not in (parent(7), first.headers["traceparent"])
    assert sent[0]["tracestate"] == "rojo=1,congo=2"
    assert sent[1]["traceparent"].split("-")[1] == second.headers["traceparent"].split("-")[1]
    assert "tracestate" not in sent[1]


QUICK = {"FLIGHTSVC_SIMULATED_LATENCY_MS": "1", "FLIGHTSVC_MODE": "local"}


def post(master: Master, session: str) -> Reply:
    return post_json(master.url + path(session), ASKED)


class Silent(Master):
    """A service whose standard error does not say where it listens."""

    def __init__(self, *options: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        env = {**QUICK, "FLIGHTSVC_BIND": f"127.0.0.1:{self._port}", "FLIGHTSVC_WORKERS": "1"}
        super().__init__(env, options=options, app="wsgi:app")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"


def test_the_form_changes_at_hup_and_text_is_one_line_each(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("log_format = 'text'\n")
    env = {**QUICK, "FLIGHTSVC_CONFIG": str(file), "FLIGHTSVC_WORKERS": "1"}
    with Master(env, app="wsgi:app") as master:
        post(master, "before")
        text = master.log()
        file.write_text("log_format = 'json'\n")
        master.reload()
        post(master, "after")
        later = master.log()[len(text) :]

    line = next(line for line in text.splitlines() if "before" in line)
    assert all(line.startswith("[") for line in text.splitlines())
    assert "[INFO] POST evaluations 200 in " in line
    assert " role=local session_id=before flight_id=" in line
    jsons = [line for line in later.splitlines() if line.startswith("{")]
    assert [line["session_id"] for line in read("\n".join(jsons), "request")] == ["after"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_model_that_fails_leaves_one_line_however_many_wait(
    model: ModelServerProcess, form: str
) -> None:
    """All retries and the smaller model fail: four calls, three callers, one failure line."""
    model.reset()
    model.script([{"match": {}, "behave": {"status": 500}}])
    env = {
        **openai(model),
        "FLIGHTSVC_OPENAI_SMALL_MODEL": "small",
        "FLIGHTSVC_STAGES__EVALUATION__RETRY_DELAYS_MS": "[100, 100]",
        "FLIGHTSVC_LOG_FORMAT": form,
    }
    with Service(env, workers=2) as service:
        asking: list[Any] = [gevent.spawn(service.post, path("s"), ASKED) for _ in range(3)]
        assert {each.get().json()["code"] for each in asking} == {"RETRY_EXHAUSTED"}
        wait_until(lambda: service.log().count("failed after" if form == "text" else "failure") > 0)
        gevent.sleep(0.3)
        log = service.log()

    assert model.stats()["calls"] == 4
    if form == "json":
        (failure,) = read(log, "failure")
        assert (failure["code"], failure["retry_count"]) == ("RETRY_EXHAUSTED", 2)
        assert (failure["role"], failure["fallback_action"]) == ("owner", "manual_review")
        assert len(read(log, "request")) == 3
        return
    (line,) = [line for line in log.splitlines() if "failed after" in line]
    assert "[WARNING] failed after " in line
    assert " role=owner code=RETRY_EXHAUSTED fallback_action=manual_review session_id=s " in line


def test_a_file_gets_gunicorns_lines_and_ours_and_is_opened_again(tmp_path: Path) -> None:
    file = tmp_path / "error.log"
    with Silent("--error-logfile", str(file)) as master:
        post(master, "before")
        file.rename(tmp_path / "old.log")
        master.send(signal.SIGUSR1)
        wait_until(file.exists)
        wait_until(lambda: post(master, "after").status and "after" in file.read_text())
        assert master.log() == ""
    old, new = read((tmp_path / "old.log").read_text()), read(file.read_text())
    assert {line["event"] for line in old} == {"log", "request"}
    assert "before" in [line.get("session_id") for line in old]
    assert {line["session_id"] for line in new if line["event"] == "request"} == {"after"}


def test_the_level_of_gunicorn_holds_for_all() -> None:
    with Silent("--log-level", "warning") as master:
        assert post(master, "s").status == 200
        assert master.log() == ""


def test_gunicorns_own_numbers_still_reach_a_statsd() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as statsd:
        statsd.bind(("127.0.0.1", 0))
        statsd.settimeout(10)
        host = f"127.0.0.1:{statsd.getsockname()[1]}"
        with Service(QUICK, workers=1, options=("--statsd-host", host)) as service:
            service.post(path("s"), ASKED)
            seen = b""
            while b"gunicorn.requests:1|c" not in seen:
                seen += statsd.recv(1500) + b"\n"
            assert lines_of(service, "s")


def test_a_log_configuration_of_ones_own_has_everything(tmp_path: Path) -> None:
    file = tmp_path / "logging.ini"
    file.write_text(
        "[loggers]\nkeys=root\n[handlers]\nkeys=out\n[formatters]\nkeys=mine\n"
        "[logger_root]\nlevel=INFO\nhandlers=out\n"
        "[handler_out]\nclass=StreamHandler\nformatter=mine\nargs=(sys.stdout,)\n"
        "[formatter_mine]\nformat=MINE %(name)s %(message)s\n"
    )
    with Service(QUICK, workers=1, options=("--log-config", str(file))) as service:
        service.post(path("s"), ASKED)
        wait_until(lambda: "MINE flightsvc.request POST evaluations 200" in service.log())


def test_many_workers_do_not_mix_their_lines() -> None:
    with Service(QUICK, workers=3) as service:
        ask = lambda number: service.post(path(f"s{number}"), ASKED)  # noqa: E731
        Pool(30).map(ask, range(300))
        lines = read(service.log(), "request")
    assert sorted(line["session_id"] for line in lines) == sorted(f"s{n}" for n in range(300))
