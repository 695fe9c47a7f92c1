"""The service under gunicorn, asked whatever `/openapi.json` allows and a lot that it does not.

schemathesis runs as a program of its own: it must not be patched by gevent. FUZZ_SECONDS is how
long it searches (`make fuzz`), FUZZ_SEED repeats a search.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import ROOT
from tests.support.redis_server import RedisServer
from tests.support.service import Service

#: in the usual run the same search every time; a long one finds its own way
SECONDS = int(os.environ.get("FUZZ_SECONDS", "30"))
SEED = os.environ.get("FUZZ_SEED", "" if "FUZZ_SECONDS" in os.environ else "1")
TOKENS = {"FUZZ_TOKEN": "token-acme", "FUZZ_OPERATOR_TOKEN": "token-ada"}


@pytest.fixture
def service(redis_server: RedisServer, namespace: str) -> Iterator[Service]:
    env = {
        "FLIGHTSVC_REDIS_URL": redis_server.url,
        "FLIGHTSVC_NAMESPACE": namespace,
        "FLIGHTSVC_API_TOKENS": json.dumps({TOKENS["FUZZ_TOKEN"]: "acme"}),
        "FLIGHTSVC_OPERATOR_TOKENS": json.dumps({TOKENS["FUZZ_OPERATOR_TOKEN"]: "ada"}),
        "FLIGHTSVC_SIMULATED_LATENCY_MS": "2",
    }
    with Service(env, workers=2) as service:
        yield service


@pytest.mark.timeout(SECONDS + 120)
def test_no_answer_is_undeclared(service: Service, tmp_path: Path) -> None:
    """No fault of ours, no status, type, header or body that the document does not have."""
    command = [
        *(sys.executable, "-m", "schemathesis.cli"),
        *("--config-file", str(ROOT / "tests" / "fuzz" / "schemathesis.toml")),
        *("run", f"{service.url}/openapi.json", "--max-time", str(SECONDS)),
        *(("--seed", SEED) if SEED else ()),
    ]
    env = {
        **os.environ,
        **TOKENS,
        "SCHEMATHESIS_HOOKS": "tests.fuzz.hooks",
        "PYTHONPATH": str(ROOT),
    }

    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=SECONDS + 90
    )

    print(done.stdout[-60_000:], done.stderr[-10_000:])
    assert done.returncode == 0
    assert "Traceback" not in service.log()
