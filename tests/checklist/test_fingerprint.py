"""Equal faults have equal fingerprints, whatever request they hit; different ones differ."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flightsvc.checklist import fingerprint
from flightsvc.checklist.fingerprint import normalised, place
from flightsvc.errors import (
    AttemptTimeout,
    CallFailed,
    FailureType,
    FallbackAnswer,
    ProviderRejected,
    ProviderUnavailable,
)
from flightsvc.guard.attempt import run_within

WORDS = st.text(alphabet="abcdefghijklmnopqrstuvwxyz ", min_size=1, max_size=20)
HEX = st.text(alphabet="0123456789abcdef", min_size=16, max_size=40).filter(
    lambda text: any(map(str.isdigit, text)) and not text.isdigit()
)
#: what differs from one occurrence to the next, as it is written
VARIABLE: dict[str, st.SearchStrategy[str]] = {
    "number": st.integers(0, 10**12).map(str),
    "decimal": st.decimals(0, 10**6, places=2).map(str),
    "duration": st.integers(0, 10**6).map(lambda number: f"{number}ms"),
    "share": st.integers(0, 100).map(lambda number: f"{number}%"),
    "address": st.integers(0, 2**64).map(lambda number: f"0x{number:x}"),
    "uuid": st.uuids().map(str),
    "long id": HEX,
    "prefixed id": st.integers(0, 10**9).map(lambda number: f"req_{number}"),
    "quoted": WORDS.map(lambda text: f'"{text}"'),
    "single-quoted": WORDS.map(lambda text: f"'{text}'"),
    "curly-quoted": WORDS.map(lambda text: f"“{text}”"),
    "url": st.tuples(WORDS, st.integers(1, 9999)).map(
        lambda parts: f"https://h{parts[1]}.example/{parts[0].replace(' ', '/')}?q={parts[1]}"
    ),
    "mail": st.integers(0, 999).map(lambda number: f"user{number}@example.com"),
    "host and port": st.integers(1, 65_535).map(lambda port: f"127.0.0.1:{port}"),
    "path": st.integers(0, 999).map(lambda number: f"/var/data/{number}.pdf"),
    "time": st.datetimes().map(lambda moment: moment.replace(microsecond=0).isoformat() + "Z"),
}


@pytest.mark.parametrize("kind", VARIABLE)
@settings(max_examples=50)
@given(data=st.data())
def test_what_differs_between_occurrences_does_not_count(kind: str, data: st.DataObject) -> None:
    one, other = data.draw(VARIABLE[kind]), data.draw(VARIABLE[kind])
    before, after = data.draw(WORDS), data.draw(WORDS)
    assert fingerprint(ValueError(f"{before} {one} {after}")) == fingerprint(
        ValueError(f"{before} {other} {after}")
    )


@given(WORDS, WORDS)
def test_other_words_are_another_fault(one: str, other: str) -> None:
    same = one.split() == other.split()
    assert (fingerprint(ValueError(one)) == fingerprint(ValueError(other))) is same


@given(st.text())
def test_any_message_has_a_fingerprint(message: str) -> None:
    found = fingerprint(RuntimeError(message))
    assert len(found) == 16
    assert int(found, 16) >= 0
    assert found == fingerprint(RuntimeError(message))


def test_chinese_messages_keep_their_words() -> None:
    assert normalised("第 3 次重试失败：连接 10.0.0.8:443 超时") == normalised(
        "第 12 次重试失败：连接 10.0.0.9:80 超时"
    )
    assert fingerprint(ValueError("连接超时")) != fingerprint(ValueError("连接被拒绝"))


def test_the_class_counts() -> None:
    assert fingerprint(ValueError("x")) != fingerprint(TypeError("x"))


def test_the_provider_s_code_counts_and_its_ids_do_not() -> None:
    def failed(code: str) -> str:
        return fingerprint(ProviderUnavailable("It failed.", upstream_code=code))

    assert failed("20303") != failed("20804")
    assert failed("req_12345") == failed("req_67890")
    assert fingerprint(ProviderRejected(upstream_status=400)) != fingerprint(
        ProviderRejected(upstream_status=401)
    )


def raised(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def here() -> None:
    raise ValueError("x")


def there() -> None:
    raise ValueError("x")


def test_the_place_is_a_function_not_a_line() -> None:
    assert place(raised(here)) == f"{__name__}:here"
    assert fingerprint(raised(here)) != fingerprint(raised(there))
    scope: dict[str, object] = {"__name__": "shop.model"}
    sources = [
        "def ask():\n    raise ValueError('x')",
        "\n\n\ndef ask():\n\n    raise ValueError('x')",
    ]
    prints = set()
    for source in sources:
        exec(compile(source, "/srv/shop/model.py", "exec"), scope)
        error = raised(scope["ask"])  # type: ignore[arg-type]
        assert place(error) == "shop.model:ask"
        prints.add(fingerprint(error))
    assert len(prints) == 1


def test_the_place_is_the_caller_s_not_the_library_s() -> None:
    def parse() -> None:
        int("x")
        __import__("json").loads("{")

    error = raised(lambda: __import__("json").loads("{"))
    assert place(error).startswith(f"{__name__}:test_the_place_is_the_caller_s")
    assert place(raised(parse)).endswith("parse")


def test_the_place_is_the_call_s_not_the_guard_s() -> None:
    assert place(raised(lambda: run_within(5, lambda _timeout_s: here()))) == f"{__name__}:here"


def test_an_installed_call_is_found_behind_the_guard() -> None:
    scope = {"__name__": "shop.model"}
    source = "def ask(timeout_s):\n    raise ValueError('x')"
    exec(compile(source, "/opt/venv/lib/python3/site-packages/shop/model.py", "exec"), scope)
    ask: Callable[[float], object] = scope["ask"]  # type: ignore[assignment]
    assert place(raised(lambda: run_within(5, ask))) == "shop.model:ask"


def test_what_stands_for_a_failure_has_that_failure_s_fingerprint() -> None:
    inner = AttemptTimeout()
    told = CallFailed(failure_type=FailureType.TIMEOUT, code=inner.code, retryable=True, status=504)
    told.__cause__ = inner
    stand_in = FallbackAnswer("text", action="template", failure=inner)
    assert fingerprint(told) == fingerprint(stand_in) == fingerprint(inner)


def test_an_error_that_cannot_speak_has_one() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert fingerprint(Mute()) == fingerprint(Mute())


def test_other_processes_give_the_same() -> None:
    program = textwrap.dedent("""
        from flightsvc.checklist import fingerprint
        from flightsvc.errors import AttemptTimeout
        print(fingerprint(AttemptTimeout(f"at {object()}")))
    """)
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert said == {fingerprint(AttemptTimeout(f"at {object()}")) + "\n"}


def test_a_uuid_of_digits_only_is_an_id() -> None:
    assert normalised(f"job {UUID(int=0)}") == "job <id>"
