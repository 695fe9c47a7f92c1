"""Installs StatsD (npm), carbon and graphite-web (pip) below ``.run/``, once.

Node.js and cairo are Debian's; what of them is missing is said, not installed.
"""

from __future__ import annotations

import ctypes.util
import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: where they are installed
FOLDER = ROOT / ".run" / "graphite"
STATSD = "statsd@0.9.0"

_REQUIREMENTS = Path(__file__).with_name("programs.txt")
#: the newest Python that the Django of graphite-web runs on
_NEWEST = (3, 11)


class CannotInstall(Exception):
    """Something is missing, or an installation failed; the text says what."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Installed, and where."""

    folder: Path

    @property
    def venv(self) -> Path:
        """The virtual environment of carbon and graphite-web."""
        return self.folder / "venv"

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.venv / "bin" / "python"

    @property
    def carbon(self) -> Path:
        """The script of carbon's cache."""
        return self.venv / "bin" / "carbon-cache.py"

    @property
    def statsd(self) -> Path:
        """The script that Node.js runs."""
        return self.folder / "node" / "node_modules" / "statsd" / "stats.js"


def missing() -> list[str]:
    """Debian's packages that have to be installed first."""
    there = {
        "nodejs": shutil.which("node"),
        "npm": shutil.which("npm"),
        "libcairo2": ctypes.util.find_library("cairo"),
        "fonts-dejavu-core": _has_font(),
        "python3-venv": find_spec("ensurepip"),
    }
    return [package for package, found in there.items() if not found]


def install(folder: Path = FOLDER) -> Programs:
    """Install what is not there yet; about a minute, then nothing.

    :raises CannotInstall: something is missing, or the network is.
    """
    if lacking := missing():
        raise CannotInstall(f"Debian packages are missing: apt-get install {' '.join(lacking)}")
    if sys.version_info[:2] > _NEWEST:
        raise CannotInstall("graphite-web's Django needs Python 3.11: make PYTHON=python3.11")
    folder.mkdir(parents=True, exist_ok=True)
    programs, done = Programs(folder), folder / "installed"
    wanted = f"{folder}\n{sys.version}\n{STATSD}\n{_REQUIREMENTS.read_text()}"
    with _alone(folder / "lock"):
        if not done.exists() or done.read_text() != wanted:
            done.unlink(missing_ok=True)
            _install(programs)
            done.write_text(wanted)
    return programs


def _install(programs: Programs) -> None:
    node = programs.folder / "node"
    shutil.rmtree(node, ignore_errors=True)
    node.mkdir()
    _run(sys.executable, "-m", "venv", "--clear", str(programs.venv))
    pip = (str(programs.python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    _run(*pip, "-r", str(_REQUIREMENTS))
    quiet = ("--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error", "--omit=optional")
    _run("npm", "install", "--prefix", str(node), *quiet, STATSD)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        words = (done.stderr or done.stdout).strip()[-2_000:]
        raise CannotInstall(f"{command[0]} failed with {done.returncode}: {words}")


def _has_font() -> bool:
    """Whether text can be drawn: fontconfig finds nothing where there is no font at all."""
    folders = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"))
    return any(next(folder.rglob("*.[to]tf"), None) for folder in folders if folder.is_dir())


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Other processes wait; the lock ends with this process at the latest."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
