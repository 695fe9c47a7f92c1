"""The service as dashboards are shown with it: two workers, a Valkey, a scripted model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dashboards.chain import Chain
from dashboards.configuration import HOST
from dashboards.load import PRICES, Load, script
from flightsvc.demo.service import DemoService
from flightsvc.model_server.process import ModelServerProcess


@contextmanager
def loaded(chain: Chain) -> Iterator[tuple[DemoService, Load]]:
    """The service, sending its metrics to a chain, and a load for it that has not begun."""
    settings = {
        "FLIGHTSVC_STATSD_HOST": HOST,
        "FLIGHTSVC_STATSD_PORT": str(chain.statsd_port),
        "FLIGHTSVC_BREAKER_RESET_S": "4",
        # soon enough to be seen
        "FLIGHTSVC_HEARTBEAT_MS": "1000",
        "FLIGHTSVC_TAKEOVER_DETECT_MS": "3000",
        "FLIGHTSVC_STAGES__EXTRACTION__CONCURRENCY": "1",
        "FLIGHTSVC_STAGES__EXTRACTION__QUEUE": "2",
        **{f"FLIGHTSVC_STAGES__{stage}__CALL_PRICE": price for stage, price in PRICES.items()},
    }
    with ModelServerProcess(script()) as model, DemoService(model.base_url, settings) as service:
        yield service, Load(service, model)
