"""Many requests on several workers, one model call."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import gevent
from gevent.pool import Pool

from flightsvc.model_server.process import ModelServerProcess
from tests.support.redis_server import RedisServer
from tests.support.service import Reply, Service
from tests.web.running import ACME, BETA, flight_id, is_problem, openai, path, send_raw


def roles(replies: list[Reply]) -> Counter[str]:
    return Counter(reply.headers["flight-role"] for reply in replies)


def test_1000_requests_with_one_key_are_one_model_call(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"latency_ms": 1_000}}])

    pool = Pool(1_000)
    post = lambda _: service.post(path(session), asked, headers=ACME)  # noqa: E731
    replies: list[Reply] = pool.map(post, range(1_000))

    assert Counter(reply.status for reply in replies) == {200: 1_000}
    assert len({reply.body for reply in replies}) == 1
    assert replies[0].json()["simulated"] is False
    assert "flight-simulated" not in replies[0].headers
    assert len({reply.headers["flight-fence"] for reply in replies}) == 1
    assert {reply.headers["flight-id"] for reply in replies} == {flight_id(session, asked)}
    assert model.stats()["calls"] == 1
    assert roles(replies)["owner"] == 1
    assert roles(replies).keys() <= {"owner", "follower", "replay", "l1"}


def test_different_keys_are_as_many_calls_as_keys(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"latency_ms": 300}}])
    bodies = [{**asked, "answer": f"Answer number {number % 40}."} for number in range(400)]

    post = lambda body: service.post(path(session), body, headers=ACME)  # noqa: E731
    replies: list[Reply] = Pool(400).map(post, bodies)

    assert Counter(reply.status for reply in replies) == {200: 400}
    stats = model.stats()
    assert stats["calls"] == 40
    assert set(stats["by_key"].values()) == {1}
    assert len({reply.headers["flight-id"] for reply in replies}) == 40
    assert roles(replies)["owner"] == 40


def test_h07_the_first_caller_hangs_up(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"gate": "answer"}}])
    first = send_raw(service, path(session), json.dumps(asked).encode())
    model.until(open_calls=1)
    others = [gevent.spawn(service.post, path(session), asked, headers=ACME) for _ in range(8)]
    where = "/v1/flights/" + flight_id(session, asked)
    deadline = time.monotonic() + 2
    while service.get(where, headers=ACME).json()["followers"] == 0:
        if time.monotonic() > deadline:
            break  # all eight may have met the first one's worker: they wait there as well
        gevent.sleep(0.02)

    first.close()
    assert model.stats()["open_calls"] == 1
    model.open_gate("answer")

    replies: list[Reply] = [other.get() for other in others]
    assert [reply.status for reply in replies] == [200] * 8
    stats = model.stats()
    assert (stats["calls"], stats["cancelled"]) == (1, 0)
    later = service.post(path(session), asked, headers=ACME)
    assert later.headers["flight-role"] in ("replay", "l1")
    assert later.body == replies[0].body


def test_h21_the_same_question_of_two_tenants(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"latency_ms": 300}}])

    at_once = [
        gevent.spawn(service.post, path(session), asked, headers=headers)
        for headers in (ACME, BETA) * 10
    ]
    replies: list[Reply] = [each.get() for each in at_once]
    later = [service.post(path(session), asked, headers=headers) for headers in (ACME, BETA)]

    assert model.stats()["calls"] == 2
    assert {reply.status for reply in replies + later} == {200}
    acme = {reply.headers["flight-id"] for reply in [*replies[0::2], later[0]]}
    beta = {reply.headers["flight-id"] for reply in [*replies[1::2], later[1]]}
    assert acme == {flight_id(session, asked, "acme")}
    assert beta == {flight_id(session, asked, "beta")}


def test_h21_nothing_in_a_request_imitates_a_tenant(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    service.post(path(session), asked, headers=BETA)

    for name, value in [("tenant", "beta"), ("T", "beta"), ("variant", ""), ("key", "x")]:
        reply = service.post(path(session), {**asked, name: value}, headers=ACME)
        is_problem(reply, 422, "INPUT_INVALID")
    headers = {**ACME, "X-Tenant": "beta", "Tenant": "beta", "Idempotency-Key": "beta"}
    assert service.post(path(session), asked, headers=headers).headers["flight-role"] == "owner"
    reply = service.post(path("beta:" + session), asked, headers=ACME)
    assert reply.headers["flight-role"] == "owner"
    assert model.stats()["calls"] == 3


def test_a_flight_shows_itself_to_its_tenant_only(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"gate": "answer"}}])
    asking = gevent.spawn(service.post, path(session), asked, headers=ACME)
    model.until(open_calls=1)
    where = "/v1/flights/" + flight_id(session, asked)

    running = service.get(where, headers=ACME).json()
    model.open_gate("answer")
    answered: Reply = asking.get()
    done = service.get(where, headers=ACME).json()

    assert (running["state"], running["stage"]) == ("RUNNING", "evaluation")
    assert running["ownerships"] == 1
    assert running["age_ms"] >= 0
    assert (done["state"], done["size"]) == ("SUCCEEDED", len(answered.body))
    assert str(done["fence"]) == answered.headers["flight-fence"]
    is_problem(service.get(where, headers=BETA), 404, "NOT_FOUND")
    is_problem(service.get(where), 401, "UNAUTHENTICATED")
    assert asked["answer"] not in json.dumps([running, done])


def test_two_services_on_one_redis_are_one(
    model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"gate": "answer"}}])
    with RedisServer() as redis:
        env = {**openai(model), "FLIGHTSVC_REDIS_URL": redis.url}
        with Service(env, workers=1) as one, Service(env, workers=1) as two:
            waiting = [
                gevent.spawn(service.post, path(session), asked) for service in (one, two) * 5
            ]
            where = "/v1/flights/" + flight_id(session, asked, tenant="")
            while (view := one.get(where)).status != 200 or view.json()["followers"] < 1:
                gevent.sleep(0.02)
            model.open_gate("answer")
            replies: list[Reply] = [each.get() for each in waiting]

    assert {reply.status for reply in replies} == {200}
    assert len({reply.body for reply in replies}) == 1
    assert model.stats()["calls"] == 1
