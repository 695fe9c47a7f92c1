"""H34 as clients meet it: two services of one worker each, twenty callers, one probe."""

from __future__ import annotations

import json
from typing import Any

import gevent

from flightsvc.model_server.process import ModelServerProcess
from tests.golden.telling import listed
from tests.logs.reading import read
from tests.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Reply, Service
from tests.web.running import openai, path

ASKED = {"question_number": 1, "question": "Why?", "answer": "Because."}


def code_of(reply: Reply) -> str:
    return str(json.loads(reply.body).get("code", ""))


def test_h34_one_probes_and_nineteen_are_told_at_once(
    model_server: ModelServerProcess, redis_server: RedisServer, namespace: str
) -> None:
    model_server.reset()
    model_server.script([{"match": {}, "behave": {"status": 500}}])
    env = {
        **openai(model_server),
        "FLIGHTSVC_REDIS_URL": redis_server.url,
        "FLIGHTSVC_NAMESPACE": namespace,
        "FLIGHTSVC_BREAKER_FAILURES": "2",
        "FLIGHTSVC_BREAKER_RESET_S": "3",
    }
    with Service(env, workers=1) as one, Service(env, workers=1) as two:

        def ask(service: Service, number: int) -> Reply:
            return service.post(path(f"s{number}"), ASKED, headers={"Accept-Language": "zh"})

        for number in range(3):
            ask(one, number)
        wait_until(lambda: code_of(ask(two, 9)) == "CIRCUIT_OPEN")  # it has not failed once here
        calls = model_server.stats()["calls"]
        gevent.sleep(3.1)
        model_server.script([{"match": {}, "behave": {"gate": "go"}}])
        asking: list[Any] = [
            gevent.spawn(ask, (one, two)[number % 2], number) for number in range(100, 120)
        ]
        wait_until(lambda: sum(each.dead for each in asking) == 19)
        assert model_server.stats()["open_calls"] == 1
        model_server.open_gate("go")
        replies = [each.get() for each in asking]
        failures = [line for each in (one, two) for line in read(each.log(), "failure")[-9:]]

    assert model_server.stats()["calls"] == calls + 1
    refused = [reply for reply in replies if reply.status != 200]
    assert len(refused) == 19
    for reply in refused:
        assert (reply.status, code_of(reply)) == (503, "CIRCUIT_OPEN")
        assert int(reply.headers["retry-after"]) >= 1
        assert json.loads(reply.body)["message"] == listed("CIRCUIT_OPEN").message_zh
    # as the guard measures it: what twenty clients on this machine need is not its own
    assert {line["code"] for line in failures} == {"CIRCUIT_OPEN"}
    assert max(line["duration_ms"] for line in failures) < 100
