"""Foreign software that tests use, fetched once a checkout and kept below its folder `.run`."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path


def installed(folder: Path, recipe: bytes, fetch: Callable[[Path], None]) -> Path:
    """A folder in which something is installed.

    :param recipe: what is installed; another recipe is another installation.
    :param fetch: installs it into a new folder.
    """
    target = folder.with_name(f"{folder.name}-{hashlib.sha256(recipe).hexdigest()[:12]}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other test processes wait, and find it done
        done = target / ".complete"
        if not done.exists():
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            fetch(target)
            done.touch()
    return target
