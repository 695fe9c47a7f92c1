from __future__ import annotations

import re

import pytest

from flightsvc import metrics as package
from flightsvc.metrics import METRICS, Metric
from flightsvc.metrics.series import LABEL_LENGTH


def test_every_constant_is_listed_once_and_importable_from_the_package() -> None:
    named = {name: value for name, value in vars(package).items() if isinstance(value, Metric)}
    assert set(named.values()) == set(METRICS)
    assert set(named) <= set(package.__all__)
    assert len({metric.name for metric in METRICS}) == len(METRICS)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_described_and_its_name_is_clean(metric: Metric) -> None:
    assert re.fullmatch(r"[a-z_]+(\.([a-z_]+|\{[a-z_]+\}))+", metric.name)
    assert metric.labels == tuple(re.findall(r"{(.+?)}", metric.name))
    assert metric.unit
    assert metric.help.endswith(".")
    if metric.kind == "timer":
        assert metric.unit == "ms"


def test_no_name_can_outgrow_a_datagram() -> None:
    # prefix 100, gauge suffix 41, the longest value 16 digits, a rate of 14 and the signs
    longest = max(len(metric.name) + LABEL_LENGTH * len(metric.labels) for metric in METRICS)
    assert longest + 100 + 41 + 30 + 16 < 512
