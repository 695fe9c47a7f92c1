"""The door in one app and without Redis: retries, settings, mounting, providers without a door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gevent
import pytest
from flask import Flask
from gevent.pywsgi import WSGIServer

from flightsvc.app import close_worker, create_app
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.settings import Settings
from flightsvc.web import gateway_blueprint
from tests.gateway.talking import Chat
from tests.support.redis_server import RedisServer


class Door:
    """An app of this process, and a client of it."""

    def __init__(self, model: ModelServerProcess, **settings: Any) -> None:
        given = {
            "mode": "local",
            "provider": "openai",
            "openai_base_url": model.base_url,
            "openai_model": "test-model",
        }
        self.app: Flask = create_app(Settings.checked(**{**given, **settings}))
        self._client = self.app.test_client()

    def ask(self, chat: Chat, path: str = "/v1/chat/completions", **fields: Any) -> Any:
        return self._client.post(path, json={**chat.body, **fields})

    def get(self, path: str) -> Any:
        return self._client.get(path)


@pytest.fixture
def door(model: ModelServerProcess) -> Iterator[Any]:
    made: list[Door] = []

    def make(**settings: Any) -> Door:
        made.append(Door(model, **settings))
        return made[-1]

    yield make
    for each in made:
        close_worker(each.app)


def events(answer: Any) -> list[Any]:
    blocks = answer.get_data(as_text=True).split("\n\n")
    data = [block[6:] for block in blocks if block.startswith("data: ")]
    return [json.loads(each) if each != "[DONE]" else each for each in data]


def calls(model: ModelServerProcess, chat: Chat) -> int:
    found: int = model.stats()["by_rule"].get(chat.mark, 0)
    return found


@pytest.mark.parametrize("stream", [True, False])
def test_the_model_is_asked_again_before_the_first_byte(
    model: ModelServerProcess, door: Any, stream: bool
) -> None:
    chat = Chat("hello")
    model.script([chat.rule(nth=1, status=503), chat.rule()])
    assert door().ask(chat, stream=stream).status_code == 200
    assert calls(model, chat) == 2


def test_h26_it_is_not_asked_again_after_it(model: ModelServerProcess, door: Any) -> None:
    chat = Chat("hello")
    model.script([chat.rule(nth=1, cut_after_chunks=0), chat.rule()])
    *_, last = events(door().ask(chat, stream=True))
    assert last["error"]["code"] == "provider_unreachable"
    assert calls(model, chat) == 1


def test_h25_cut_streams_count_against_the_model(model: ModelServerProcess, door: Any) -> None:
    app = door(breaker_failures=3)
    for _ in range(3):
        chat = Chat("hello")
        model.script([chat.rule(cut_after_chunks=2, cut="clean")])
        *_, last = events(app.ask(chat, stream=True))
        assert last["error"]["code"] == "ai_answer_incomplete"
    refused = app.ask(Chat("hello"), stream=True)
    assert (refused.status_code, refused.get_json()["error"]["code"]) == (503, "circuit_open")
    assert int(refused.headers["Retry-After"]) > 1


def test_h35_what_clients_do_wrong_does_not(model: ModelServerProcess, door: Any) -> None:
    app = door(breaker_failures=3)
    for _ in range(5):
        chat = Chat("hello")
        model.script([chat.rule(status=400)])
        assert app.ask(chat).status_code == 400
    model.script([])
    assert app.ask(Chat("hello")).status_code == 200


def test_h27_who_is_told_when_to_come_back_is_not_made_to_wait(
    model: ModelServerProcess, door: Any
) -> None:
    chat = Chat("hello")
    model.script([chat.rule(status=429, retry_after=1)])
    refused = door().ask(chat)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert calls(model, chat) == 1


def test_what_reaches_the_model_is_the_body_as_a_stream(
    model: ModelServerProcess, door: Any
) -> None:
    chat = Chat("hello", temperature=0.5, never_heard_of={"a": [1, None]}, user="u")
    model.script([{"match": {"body_contains": '"never_heard_of":{"a":[1,null]}', "stream": True},
                   "behave": {"answer": "echo"}}])  # fmt: skip
    answer = door().ask(chat, stream=False).get_json()
    assert answer["choices"][0]["message"]["content"] == chat.text
    assert answer["usage"]["total_tokens"] > 0


def test_token_counts_can_be_left_out_for_services_that_refuse_them(
    model: ModelServerProcess, door: Any
) -> None:
    chat = Chat("hello")
    model.script([{"match": {"body_contains": "include_usage"}, "behave": {"status": 400}}])
    assert door().ask(chat).status_code == 400
    answer = door(gateway_count_tokens=False).ask(Chat("hello"))
    assert answer.status_code == 200
    assert "usage" not in answer.get_json()


def test_the_models_on_offer_are_a_setting(model: ModelServerProcess, door: Any) -> None:
    few = door(gateway_models=("small",))
    assert [each["id"] for each in few.get("/v1/models").get_json()["data"]] == ["small"]
    refused = few.ask(Chat("hello"))
    assert (refused.status_code, refused.get_json()["error"]["code"]) == (404, "model_not_found")
    assert few.ask(Chat("hello"), model="small").status_code == 200


def test_what_is_wrong_with_our_key_no_client_reads(door: Any) -> None:
    """A service that refuses to list its models may quote the key."""
    said = {"message": "Incorrect API key provided: sk-ours", "code": "invalid_api_key"}

    def refuse(_environ: Any, start: Any) -> list[bytes]:
        start("401 Unauthorized", [("Content-Type", "application/json")])
        return [json.dumps({"error": said}).encode()]

    server = WSGIServer(("127.0.0.1", 0), refuse, log=None)
    server.start()
    try:
        listed = door(openai_base_url=f"http://127.0.0.1:{server.server_port}").get("/v1/models")
    finally:
        server.stop()

    assert listed.status_code == 503
    assert listed.get_json()["error"]["code"] == "provider_auth_failed"
    assert "sk-ours" not in listed.text


def test_h42_models_that_are_not_named_share_one_breaker(
    model: ModelServerProcess, door: Any
) -> None:
    app = door()
    for name in ("test-model", "a|b:c\nd", "other-one"):
        assert app.ask(Chat("hello"), model=name).status_code == 200
    found = app.app.extensions["flightsvc"].metrics.snapshot()
    breakers = {name for name in found if name.startswith("guard.breaker.")}
    assert breakers == {"guard.breaker.openai.test-model", "guard.breaker.openai.other"}


def test_a_simulated_answer_says_so(model: ModelServerProcess, door: Any) -> None:
    app = door(provider="simulated", openai_base_url="", simulated_latency_ms=50)
    answer = app.ask(Chat("hello"), stream=True)
    assert answer.headers["Flight-Simulated"] == "true"
    assert events(answer)[-1] == "[DONE]"
    assert app.get("/v1/models").get_json()["data"][0]["id"] == "simulated"


def test_the_door_can_be_mounted_below_a_prefix(model: ModelServerProcess, door: Any) -> None:
    app = door()
    app.app.register_blueprint(gateway_blueprint("second"), url_prefix="/ai")
    assert app.ask(Chat("hello"), "/ai/v1/chat/completions").status_code == 200
    rules = {rule.rule for rule in app.app.url_map.iter_rules()}
    assert {"/v1/models", "/ai/v1/models"} <= rules


def test_an_answer_that_nobody_reads_is_given_up(model: ModelServerProcess, door: Any) -> None:
    chat = Chat("hello")
    model.script([chat.rule(chunk_chars=1, chunk_delay_ms=50)])
    app = door()
    answer = app.ask(chat, stream=True)
    answer.close()
    model.until(5, open_calls=0)
    assert model.stats()["cancelled"] == 1


def test_a_paused_stage_takes_no_chats(
    redis_server: RedisServer, namespace: str, model: ModelServerProcess, door: Any
) -> None:
    app = door(mode="hybrid", redis_url=redis_server.url, namespace=namespace)
    shared = app.app.extensions["flightsvc"].shared
    assert app.ask(Chat("hello")).status_code == 200
    shared.switches.pause("stage:chat", by="an operator", reason="too dear")
    shared.watch.refresh()
    refused = app.ask(Chat("hello"), stream=True)
    assert (refused.status_code, refused.get_json()["error"]["code"]) == (503, "module_paused")
    assert refused.headers["Retry-After"] == "30"


def test_a_stage_that_is_rolled_back_asks_the_former_model(
    redis_server: RedisServer, namespace: str, model: ModelServerProcess, door: Any
) -> None:
    app = door(
        mode="hybrid", redis_url=redis_server.url, namespace=namespace, openai_former_model="old"
    )
    chat = Chat("hello")
    assert app.ask(chat).get_json()["model"] == "test-model"
    shared = app.app.extensions["flightsvc"].shared
    shared.switches.roll_back("stage:chat", by="an operator", reason="drift")
    shared.watch.refresh()
    assert app.ask(chat).get_json()["model"] == "old"


def test_no_word_of_a_chat_is_logged(
    model: ModelServerProcess, door: Any, caplog: pytest.LogCaptureFixture
) -> None:
    app, good, bad = door(), Chat("secret"), Chat("secret")
    said = {"message": f"you said {bad.text}", "type": "invalid_request_error", "code": "c"}
    model.script([bad.rule(status=400, body={"error": said})])
    with caplog.at_level("DEBUG"):
        for chat in (good, bad):
            for stream in (True, False):
                app.ask(chat, stream=stream).get_data()
    ours = [record for record in caplog.records if record.name.startswith("flightsvc")]
    assert {record.name for record in ours} >= {"flightsvc.request", "flightsvc.failure"}
    failed = [record for record in ours if record.name == "flightsvc.failure"]
    assert {f"{record.__dict__['role']}" for record in failed} == {"local"}
    assert not [record for record in ours if "secret" in f"{record.getMessage()} {vars(record)}"]


def test_h34_a_long_stream_shows_at_its_first_chunk_that_the_model_is_back(
    model: ModelServerProcess, door: Any
) -> None:
    app = door(breaker_failures=1, breaker_reset_s=0.3)
    failing, long = Chat("hello"), Chat("a long answer")
    model.script([failing.rule(cut_before_answer=True),
                  long.rule(chunk_chars=1, gate="go", gate_after_chunks=2)])  # fmt: skip
    assert app.ask(failing).status_code == 503
    assert app.ask(Chat("hello")).get_json()["error"]["code"] == "circuit_open"
    gevent.sleep(0.4)
    answer = app.ask(long, stream=True)  # the probe; its head comes with its first chunk
    assert app.ask(Chat("hello")).status_code == 200
    model.open_gate("go")
    assert events(answer)[-1] == "[DONE]"
