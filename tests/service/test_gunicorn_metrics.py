"""gunicorn's own numbers go where the service's go, under the same prefix."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.metrics.receiver import Receiver
from tests.support.service import Service


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.close()


def test_they_are_sent_beside_the_service_s_own(receiver: Receiver) -> None:
    settings = {
        "FLIGHTSVC_STATSD_HOST": "127.0.0.1",
        "FLIGHTSVC_STATSD_PORT": str(receiver.port),
        "FLIGHTSVC_STATSD_PREFIX": "shop.x",
        "FLIGHTSVC_STATSD_FLUSH_MS": "100",
    }
    with Service(settings, workers=1) as service:
        for _ in range(5):
            assert service.get("/nowhere").status == 404
        receiver.wait(lambda: receiver.totals().get("shop.x.gunicorn.request.status.404") == 5)
        receiver.wait(lambda: receiver.values("shop.x.process.memory.0", "g"))
        receiver.wait(lambda: receiver.values("shop.x.gunicorn.workers", "g"))
    assert len(receiver.values("shop.x.gunicorn.request.duration", "ms")) >= 5
    strangers = [line for line in receiver.lines if not line.startswith("shop.x.")]
    assert not strangers
    assert all(len(one) <= 512 for one in receiver.datagrams)


def test_gunicorn_s_own_options_send_them_elsewhere(receiver: Receiver) -> None:
    options = ("--statsd-host", f"127.0.0.1:{receiver.port}", "--statsd-prefix", "front")
    with Service(workers=1, options=options) as service:
        service.get("/nowhere")
        receiver.wait(lambda: receiver.totals().get("front.gunicorn.request.status.404") == 1)
    assert all(line.startswith("front.gunicorn.") for line in receiver.lines)


@pytest.mark.parametrize("host", ["nosuchhost.invalid", "bad host", "[::1"])
def test_h43_a_host_that_is_not_found_stops_nothing(host: str) -> None:
    with Service({"FLIGHTSVC_STATSD_HOST": host}, workers=1) as service:
        service.get("/healthz")
        began = time.monotonic()
        for _ in range(20):
            assert service.get("/healthz").status == 200
        assert time.monotonic() - began < 20 * 0.25
