from __future__ import annotations

import pytest

from flightsvc.metrics import GUNICORN_METRICS, METRICS, Metric
from flightsvc.metrics.document import document
from tests.processes import ROOT


def test_the_page_is_made_from_the_names() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    assert page == document(), "run: python -m flightsvc.metrics.document > docs/metrics.md"


def test_every_metric_is_on_it() -> None:
    page = document()
    for metric in (*METRICS, *GUNICORN_METRICS):
        assert page.count(f"| `{metric.name}` |") == 1


@pytest.mark.parametrize("metric", [*METRICS, *GUNICORN_METRICS], ids=lambda metric: metric.name)
def test_a_metric_says_what_it_means_and_which_decision_it_serves(metric: Metric) -> None:
    assert metric.meaning
    assert metric.decision.split()[0] in ("how", "what", "whether", "where", "why", "whom", "which")
