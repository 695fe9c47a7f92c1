"""What is shipped is what stands here: wheel and sdist are built, installed and run elsewhere."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.processes import ROOT
from tests.service.gunicorn_master import Master

NOT_SOURCE = (".git", ".venv", ".run", "build", "dist", "*.egg-info", "__pycache__", ".*_cache")


def copy_tree(target: Path) -> Path:
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*NOT_SOURCE))
    return target


def run(*words: object, cwd: Path) -> str:
    """Run a command in a clean environment; its output."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "FLIGHTSVC_"))}
    done = subprocess.run([*map(str, words)], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(source: Path, kind: str) -> Path:
    out = source / "dist"
    run(sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "-o", out, source, cwd=source)
    (built,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


@dataclass(frozen=True)
class Installed:
    """A clean environment: the built package, what it says it requires, and nothing else."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    def says(self, code: str) -> str:
        return run(self.python, "-c", code, cwd=self.folder).strip()


def install(wheel: Path, folder: Path) -> Installed:
    venv.create(folder, with_pip=False, symlinks=True)
    there = Installed(folder)
    pip = (sys.executable, "-m", "pip", "--python", there.python, "install", "--quiet")
    run(*pip, "--no-deps", "--no-index", wheel, cwd=folder)
    target = Path(there.says("import site; print(site.getsitepackages()[0])"))
    (own,) = importlib.metadata.distributions(name="flightsvc", path=[str(target)])
    for name in required(own, frozenset(), {}):
        link(importlib.metadata.distribution(name), target)
    return there


def required(
    package: importlib.metadata.Distribution, extras: frozenset[str], found: dict[str, set[str]]
) -> dict[str, set[str]]:
    """All that a package needs, and what that needs: name → extras."""
    for text in package.requires or ():
        need = Requirement(text)
        wanted = [not need.marker or need.marker.evaluate({"extra": e}) for e in ("", *extras)]
        if any(wanted) and not {"", *need.extras} <= found.get(need.name, set()):
            found.setdefault(need.name, set()).update({"", *need.extras})
            required(importlib.metadata.distribution(need.name), frozenset(need.extras), found)
    return found


def link(package: importlib.metadata.Distribution, target: Path) -> None:
    """Have a package of this environment in another one too, without copying or downloading."""
    for top in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
        if not (target / top).exists():
            (target / top).symlink_to(Path(str(package.locate_file(top))))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("built")
    source = copy_tree(folder / "source")
    wheel, sdist = build(source, "wheel"), build(source, "sdist")
    with tarfile.open(sdist) as archive:
        # the archive is our own; Python 3.11 knows filters from 3.11.4 on
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder / "unpacked", **safely)  # type: ignore[arg-type]
    (unpacked,) = (folder / "unpacked").iterdir()
    return {"wheel": wheel, "sdist": sdist, "wheel of the sdist": build(unpacked, "wheel")}


@pytest.fixture(scope="module", params=["wheel", "wheel of the sdist"])
def installed(
    request: pytest.FixtureRequest,
    built: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Installed:
    return install(built[request.param], tmp_path_factory.mktemp("installed") / "venv")


def test_the_scripts_are_shipped_byte_for_byte(installed: Installed) -> None:
    where = "import importlib.resources as r; print(r.files('flightsvc') / 'lua')"
    shipped = Path(installed.says(where))
    assert installed.folder in shipped.parents
    here = {script.name: script.read_bytes() for script in (ROOT / "lua").iterdir()}
    assert here
    there = {script.name: script.read_bytes() for script in shipped.iterdir()}
    assert {name: text for name, text in there.items() if name != "__pycache__"} == here


def test_the_scripts_that_are_used_are_the_shipped_ones(installed: Installed) -> None:
    used = installed.says("from flightsvc.store import scripts; print(scripts.folder())")
    assert installed.folder in Path(used).parents


def test_it_is_imported_from_there_and_typed(installed: Installed) -> None:
    package = Path(installed.says("import flightsvc; print(flightsvc.__file__)")).parent
    assert installed.folder in package.parents
    assert (package / "py.typed").is_file()
    modules = {path.relative_to(ROOT) for path in (ROOT / "flightsvc").rglob("*.py")}
    assert {m for m in modules if not (package.parent / m).is_file()} == set()


def test_only_what_it_requires_is_there(installed: Installed) -> None:
    for name in ("gevent", "redis", "flask", "gunicorn", "zlib_ng", "pybreaker", "retrying"):
        installed.says(f"import {name}")
    there = installed.says("import importlib.util as u; print(u.find_spec('pytest'))")
    assert there == "None"


def test_the_command_says_its_version(installed: Installed) -> None:
    command = installed.folder / "bin" / "flightsvc"
    version = installed.says("import importlib.metadata as m; print(m.version('flightsvc'))")
    assert run(command, "--version", cwd=installed.folder).strip() == f"flightsvc {version}"
    assert "model-server" in run(command, "--help", cwd=installed.folder)


def serves(master: Master) -> None:
    with master:
        assert master.get("/readyz").status == 200
        assert "Warning" not in master.log()
        assert master.end() == 0
        assert master.leftovers() == []


def test_it_serves_from_the_installed_package_alone(installed: Installed) -> None:
    serves(
        Master(
            app="flightsvc.wsgi:app",
            config="python:flightsvc.gunicorn_conf",
            gunicorn=(installed.python, "-m", "gunicorn"),
            cwd=installed.folder,
        )
    )


def test_it_serves_by_the_two_files_in_another_folder(installed: Installed, tmp_path: Path) -> None:
    for name in ("wsgi.py", "gunicorn.conf.py"):
        shutil.copy(ROOT / name, tmp_path)
    serves(
        Master(
            app="wsgi:app",
            config="gunicorn.conf.py",
            gunicorn=(installed.python, "-m", "gunicorn"),
            cwd=tmp_path,
        )
    )


def test_the_wheel_holds_the_package_and_nothing_else(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as wheel:
        tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"flightsvc"}


def test_the_sdist_holds_what_is_needed_to_build_test_and_run(built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"Makefile", "LICENSE", "wsgi.py", "gunicorn.conf.py", "setup.py", "setup.cfg"}
    wanted |= {"ruff.toml", ".importlinter", ".ci/run", "tests/conftest.py"}
    wanted |= {f"lua/{script.name}" for script in (ROOT / "lua").glob("*.lua")}
    assert wanted - names == set()
    assert not [name for name in names if "__pycache__" in name or name.startswith(".venv")]


def test_a_stale_build_brings_nothing_back(tmp_path: Path) -> None:
    source = copy_tree(tmp_path / "source")
    stale = source / "build" / "lib" / "flightsvc"
    (stale / "lua").mkdir(parents=True)
    (stale / "deleted.py").touch()
    (stale / "lua" / "deleted.lua").touch()
    with zipfile.ZipFile(build(source, "wheel")) as wheel:
        names = wheel.namelist()
    assert "flightsvc/lua/acquire.lua" in names
    assert not [name for name in names if "deleted" in name]


def test_make_cleans_what_a_build_left(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("build", "dist", "flightsvc.egg-info"):
        (tmp_path / name / "lib").mkdir(parents=True)
    run("make", "clean-build", cwd=tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["Makefile"]
