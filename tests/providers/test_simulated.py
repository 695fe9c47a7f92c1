"""The simulated model: deterministic, labelled, plausible."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gevent
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flightsvc
from flightsvc.errors import ProviderTimeout
from flightsvc.metrics import Metrics
from flightsvc.providers import Message, ModelRequest, make_provider
from flightsvc.providers.simulated import simulated_text
from flightsvc.providers.terms import is_chinese, key_terms, mentions
from flightsvc.settings import Settings

QUESTION = (
    "How would you design a rate limiter for an API, and what if a node of the cluster fails?"
)
GOOD = (
    "First I would pick a token bucket per API key, because it allows bursts. The counters live in "
    "Redis and are updated by a script, so that the rate limiter is atomic across the nodes of the "
    "cluster. If a node fails, the limiter falls back to a local bucket with a smaller rate."
)
QUESTION_ZH = "请说说你在项目中如何用 Redis 实现分布式锁,锁的续期和误删问题是怎么解决的?"
GOOD_ZH = (
    "我用 SET NX PX 实现分布式锁,value 是唯一的 UUID,释放时用 Lua 脚本比较再删除,避免误删别人的锁。"
    "续期由看门狗线程完成,因为业务可能比锁的过期时间更长。"
    "如果 Redis 主从切换,还要用 fencing token 校验。"
)


def evaluation_request(question: str, answer: str) -> ModelRequest:
    material = json.dumps({"question": question, "answer": answer}, ensure_ascii=False)
    return ModelRequest(
        (Message("system", "Reply in JSON."), Message("user", material)), "evaluation"
    )


def judged(question: str, answer: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(simulated_text(evaluation_request(question, answer)))
    return document


def simulated(latency_ms: int, metrics: Metrics | None = None) -> Any:
    settings = Settings(provider="simulated", simulated_latency_ms=latency_ms)
    return make_provider(settings, metrics or Metrics.off())


def test_an_answer_is_marked_as_simulated() -> None:
    metrics = Metrics.off()
    answer = simulated(0, metrics).complete(evaluation_request(QUESTION, GOOD), 10)
    assert answer.simulated
    assert json.loads(answer.text)["feedback"].startswith("[simulated]")
    assert metrics.snapshot()["provider.time.simulated.simulated"] == 1


def test_the_same_request_has_the_same_answer_in_every_process() -> None:
    code = (
        "import sys; from flightsvc.providers import *; "
        "from flightsvc.providers.simulated import simulated_text; "
        "sys.stdout.buffer.write(simulated_text(ModelRequest("
        "(Message('user', sys.argv[1]),), 'evaluation')).encode())"
    )
    root = Path(flightsvc.__file__).parent.parent
    runs = [
        subprocess.run(
            [sys.executable, "-c", code, GOOD_ZH],
            env={"PYTHONPATH": str(root), "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
        ).stdout.decode()
        for hash_seed in ("1", "2")
    ]
    here = simulated_text(ModelRequest((Message("user", GOOD_ZH),), "evaluation"))
    assert runs == [here, here]


@pytest.mark.parametrize(
    ("question", "good", "thin", "label"),
    [
        (QUESTION, GOOD, "I would use a library.", "[simulated]"),
        (QUESTION_ZH, GOOD_ZH, "就是用 Redis 的 setnx。", "【模拟】"),
    ],
)
def test_better_answers_score_higher_in_their_own_language(
    question: str, good: str, thin: str, label: str
) -> None:
    best, worst = judged(question, good), judged(question, thin)
    astray = judged(question, "Bananas are yellow and I like the sea very much. " * 10)
    assert best["score"] > 75 > 40 > worst["score"]
    assert astray["score"] < 40
    assert best["logic_ok"]
    assert not worst["logic_ok"]
    assert worst["missing_points"]
    assert best["feedback"].startswith(label)
    assert worst["feedback"].startswith(label)


def test_the_language_is_that_of_the_answer_not_of_the_question() -> None:
    assert judged(QUESTION_ZH, GOOD)["feedback"].startswith("[simulated]")
    assert judged(QUESTION, GOOD_ZH)["feedback"].startswith("【模拟】")


@given(st.text(), st.text())
def test_any_text_gets_a_judgement_that_fits(question: str, answer: str) -> None:
    result = judged(question, answer)
    assert set(result) == {
        "score",
        "logic_ok",
        "missing_points",
        "feedback",
        "follow_up_needed",
        "follow_up_question",
    }
    assert type(result["score"]) is int
    assert 0 <= result["score"] <= 100
    assert all(isinstance(point, str) and point for point in result["missing_points"])
    assert result["follow_up_needed"] is (result["follow_up_question"] is not None)


@pytest.mark.parametrize("text", ["no JSON at all", "[1, 2]", '{"question": 3}', "[" * 100_000, ""])
def test_a_prompt_of_another_form_is_judged_as_an_answer(text: str) -> None:
    result = json.loads(simulated_text(ModelRequest((Message("user", text),), "evaluation")))
    assert result["feedback"].startswith("[simulated]")


@pytest.mark.parametrize(("text", "label"), [("hello", "[simulated]"), ("你好,请问", "【模拟】")])
def test_a_stage_without_a_sketch_gets_a_labelled_text(text: str, label: str) -> None:
    assert simulated_text(ModelRequest((Message("user", text),), "unheard_of")).startswith(label)


def test_thinking_takes_its_time_and_does_not_block_others() -> None:
    provider = simulated(300)
    request = evaluation_request(QUESTION, GOOD)
    started = time.monotonic()
    calls = [gevent.spawn(provider.complete, request, 10) for _ in range(10)]
    gevent.joinall(calls, raise_error=True)
    assert 0.3 <= time.monotonic() - started < 1.5  # ten one after the other take 3 s


def test_thinking_ends_with_the_calls_time() -> None:
    metrics = Metrics.off()
    started = time.monotonic()
    with pytest.raises(ProviderTimeout):
        simulated(60_000, metrics).complete(evaluation_request(QUESTION, GOOD), 0.2)
    assert 0.2 <= time.monotonic() - started < 5
    assert metrics.snapshot()["provider.errors.simulated.simulated.PROVIDER_TIMEOUT"] == 1


def test_terms_of_a_question() -> None:
    assert key_terms(QUESTION) == ["rate limiter", "API", "node", "cluster fails"]
    assert key_terms(QUESTION_ZH) == ["Redis", "分布式锁", "续期", "误删"]
    assert (
        key_terms("为什么要用消息队列?中间件和会话怎么选?")
        == ["消息队列", "中间件", "会话", "选"][:3]
    )
    assert key_terms("") == []


def test_terms_are_found_in_similar_forms() -> None:
    assert mentions("We shard by user; sharding helps.", "shards")
    assert mentions("锁要定期续上,分布式的锁", "分布式锁")
    assert not mentions("nothing of the kind", "rate limiter")


def test_language() -> None:
    assert is_chinese("我用 Redis 做 cache")
    assert not is_chinese("We say 缓存 for cache in Chinese")
    assert not is_chinese("")
