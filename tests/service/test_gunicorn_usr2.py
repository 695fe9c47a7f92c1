"""USR2: a new master beside the old one, each with an embedded Valkey of its own."""

from __future__ import annotations

import os
import re
import signal

from tests.processes import alive, answers, wait_until
from tests.service.gunicorn_master import Master


def valkey_of_a_worker_of(master: Master, pid: int) -> str:
    """Where a worker of this master looks for its Valkey."""
    for _ in range(200):
        said = master.told()
        if said["master"] == pid:
            return str(said["valkey"]).removeprefix("unix://")
    raise AssertionError(f"no worker of {pid} answered")


def test_the_new_master_has_a_valkey_of_its_own_and_keeps_it() -> None:
    with Master() as master:
        ((old_path, old_server),) = master.valkeys().items()
        new = master.upgrade()
        # both masters live: two servers, and each worker knows its own master's
        assert len(master.valkeys()) == 2
        new_path = valkey_of_a_worker_of(master, new)
        assert valkey_of_a_worker_of(master, master.pid) == old_path
        assert new_path != old_path
        new_server = master.valkeys()[new_path]
        # when the old master goes
        master.send(signal.SIGQUIT)
        assert master.wait() == 0
        # then its server goes, and the new one stays and is still looked after
        wait_until(lambda: not alive(old_server) and old_path not in master.valkeys())
        assert alive(new_server)
        assert valkey_of_a_worker_of(master, new) == new_path
        os.kill(new_server, signal.SIGKILL)
        wait_until(lambda: not alive(new_server) and answers(new_path))
        os.kill(new, signal.SIGTERM)
        wait_until(lambda: not alive(new))
        assert master.leftovers() == []


def test_a_new_master_can_be_taken_back() -> None:
    with Master(app="wsgi:app") as master:
        ((old_path, old_server),) = master.valkeys().items()
        new = master.upgrade()
        os.kill(new, signal.SIGTERM)
        wait_until(lambda: not alive(new))
        assert master.valkeys() == {old_path: old_server}
        assert master.get("/readyz").status == 200


def test_usr2_after_hup_hands_nothing_of_the_old_master_on() -> None:
    """gunicorn's saved environment is taken anew at each HUP."""
    with Master() as master:
        (old_path,) = master.valkeys()
        master.reload()
        new = master.upgrade()
        assert valkey_of_a_worker_of(master, new) != old_path
        assert not re.search(r"Traceback|failed to boot", master.log())
        os.kill(new, signal.SIGQUIT)
        wait_until(lambda: not alive(new))
