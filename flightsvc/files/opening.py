"""The store that the settings name."""

from __future__ import annotations

from pathlib import Path

from flightsvc.errors import SettingsError
from flightsvc.files.local import LocalFileStore
from flightsvc.files.store import FileStore
from flightsvc.settings import Settings


def open_file_store(settings: Settings) -> FileStore:
    """The store in DATA_DIR. What crashed workers left half done is removed.

    :raises SettingsError: DATA_DIR cannot be written to.
    """
    try:
        return LocalFileStore(Path(settings.data_dir) / "files")
    except OSError as error:
        raise SettingsError(
            f"FLIGHTSVC_DATA_DIR ({settings.data_dir}) cannot be written to ({error.strerror}): "
            "set it to a folder that belongs to the user of the service."
        ) from None
