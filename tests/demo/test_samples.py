"""What the demo asks is what the service takes, and can be told apart by the model server."""

from __future__ import annotations

import re

import pytest

from flightsvc.demo.samples import DIFFERENT, IDENTICAL, SAMPLES, Sample
from flightsvc.interview.evaluation import EvaluationInput, flight_key, messages

HAN = re.compile(r"[\u4e00-\u9fff]")


def asked(sample: Sample) -> EvaluationInput:
    return EvaluationInput.model_validate_json(sample.body)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_sample_is_a_request_that_the_model_server_recognises(sample: Sample) -> None:
    prompt = messages(asked(sample))[-1].content
    recognised = [other.name for other in SAMPLES if other.mark in prompt]

    assert recognised == [sample.name]


def test_no_two_samples_are_one_question() -> None:
    keys = {
        flight_key("s", asked(sample), tenant="", provider="p", model="m").flight_id
        for sample in SAMPLES
    }

    assert len(keys) == len(SAMPLES) == 1 + len(DIFFERENT)
    assert IDENTICAL not in DIFFERENT


def test_they_are_chinese_and_english() -> None:
    chinese = [sample for sample in DIFFERENT if HAN.search(sample.answer)]

    assert len(DIFFERENT) == 10
    assert len(chinese) == 5
