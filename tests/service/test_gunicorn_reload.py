"""HUP: the settings are read again, the embedded Valkey stays, a mistake does no harm."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from tests.processes import ROOT, alive, wait_until
from tests.service.gunicorn_master import Master


def write(path: Path, **values: str) -> None:
    path.write_text("".join(f"{name} = {value}\n" for name, value in values.items()))


@pytest.mark.parametrize(
    "config", [str(ROOT / "gunicorn.conf.py"), "python:flightsvc.gunicorn_conf"]
)
def test_hup_brings_new_settings_and_keeps_the_valkey(tmp_path: Path, config: str) -> None:
    file = tmp_path / "settings.toml"
    write(file, namespace='"one"')
    with Master({"FLIGHTSVC_CONFIG": str(file)}, config=config) as master:
        before = master.told()
        assert before["namespace"] == "one"
        running = master.valkeys()
        for name in ("two", "three"):
            write(file, namespace=f'"{name}"')
            master.reload()
            after = master.told()
            assert after["namespace"] == name
            assert after["pid"] != before["pid"]
            assert after["valkey"] == before["valkey"]
            assert master.valkeys() == running
        assert master.end() == 0
        assert master.leftovers() == []


@pytest.mark.parametrize("mistake", ["heartbeat_ms = 'soon'", "nonsense = 1", "[", None])
def test_hup_with_a_mistake_keeps_the_last_good_settings(
    tmp_path: Path, mistake: str | None
) -> None:
    file = tmp_path / "settings.toml"
    write(file, namespace='"good"')
    with Master({"FLIGHTSVC_CONFIG": str(file)}) as master:
        if mistake is None:
            file.unlink()
        else:
            file.write_text(mistake)
        master.reload()
        assert "The last good settings stay" in master.log()
        assert master.told()["namespace"] == "good"
        # and a worker that starts later gets them too
        died = master.told()["pid"]
        os.kill(died, signal.SIGKILL)
        wait_until(lambda: not alive(died) and len(master.children()) == 2)
        assert {master.told()["namespace"] for _ in range(6)} == {"good"}
        # until they are mended
        write(file, namespace='"mended"')
        master.reload()
        assert master.told()["namespace"] == "mended"


def test_hup_cannot_take_the_tokens_from_a_public_address(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    write(file, namespace='"with"', api_tokens='{ t0ken = "acme" }')
    env = {"FLIGHTSVC_CONFIG": str(file)}
    with Master(env, options=("-b", "0.0.0.0:0")) as master:
        write(file, namespace='"without"')
        master.reload()
        assert "FLIGHTSVC_API_TOKENS" in master.log()
        assert master.told()["namespace"] == "with"


def test_hup_moves_the_service_and_refuses_an_address_that_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    write(file, namespace='"first"', bind='"127.0.0.1:0"')
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        Master({"FLIGHTSVC_CONFIG": str(file), "FLIGHTSVC_BIND": ""}) as master,
    ):
        write(file, namespace='"second"', bind=f'"127.0.0.1:{taken.getsockname()[1]}"')
        master.reload()
        assert "cannot listen on" in master.log()
        assert master.told()["namespace"] == "first"
        write(file, namespace='"third"', bind='"localhost:0"')
        master.reload()
        assert master.told()["namespace"] == "third"


def test_hup_starts_a_valkey_where_one_is_wanted_now(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    write(file, mode='"local"')
    with Master({"FLIGHTSVC_CONFIG": str(file)}) as master:
        assert master.told()["valkey"] is None
        write(file, mode='"hybrid"')
        master.reload()
        ((path, _),) = master.valkeys().items()
        assert master.told()["valkey"] == f"unix://{path}"
        assert master.end() == 0
        assert master.leftovers() == []


def test_hup_of_the_real_service_loses_no_worker(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    write(file, namespace='"one"')
    with Master({"FLIGHTSVC_CONFIG": str(file)}, app="wsgi:app") as master:
        master.reload()
        assert master.get("/readyz").status == 200
        assert "Worker failed to boot" not in master.log()
