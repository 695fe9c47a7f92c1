"""A worker in a process of its own that takes probe leases, told what to do line by line."""

from __future__ import annotations

import json
import sys

import gevent
from gevent.fileobject import FileObject

from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store import open_store
from flightsvc.store.shared import SharedState

PROGRAM = """
from gevent import monkey; monkey.patch_all()
from tests.shared.holder import main; main()
"""
TARGET = ("openai", "gpt-4o")


def main() -> None:
    """``url namespace``; each line of input is for how many callers to ask at once."""
    url, namespace = sys.argv[1:3]
    settings = Settings.checked(redis_url=url, namespace=namespace)
    store = open_store(settings, Metrics.off())
    shared = SharedState(settings, Metrics.off(), store)
    shared.start()
    print("ready", flush=True)
    for line in FileObject(sys.stdin.fileno(), "r", close=False):
        asking = [gevent.spawn(shared.probes.take, TARGET, 60.0) for _ in range(int(line))]
        gevent.joinall(asking)
        granted = sum(each.value is not None for each in asking)
        print(json.dumps({"granted": granted, "wait_s": shared.probes.retry_after_s(TARGET)}))
        sys.stdout.flush()
    shared.close()
