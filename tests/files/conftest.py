"""A store in a temporary folder, and files in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flightsvc.files import FileStore, ReadLimits, open_file_store
from flightsvc.settings import Settings

Read = Callable[..., Any]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(mode="local", data_dir=str(tmp_path / "data"))


@pytest.fixture
def folder(settings: Settings) -> Path:
    """Where the store's files lie."""
    return Path(settings.data_dir) / "files"


@pytest.fixture
def store(settings: Settings) -> Iterator[FileStore]:
    store = open_file_store(settings)
    yield store
    store.close()


@pytest.fixture
def limits(settings: Settings) -> ReadLimits:
    return ReadLimits.of(settings)


@pytest.fixture
def read(store: FileStore, limits: ReadLimits) -> Read:
    """Read these bytes by that function, under limits that are changed as said."""

    def read(reader: Callable[..., Any], content: bytes, **changes: Any) -> Any:
        kept = store.put([content], limit=1 << 30)
        with store.path(kept.digest) as path:
            return reader(path, replace(limits, **changes))

    return read
