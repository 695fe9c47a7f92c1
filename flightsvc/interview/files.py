"""The files that questions are about, as the stages ask for them."""

from __future__ import annotations

from flightsvc.files import JPEG, FileStore, ReadLimits, read_image, read_pdf
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings


class StoredFiles:
    """See :class:`~flightsvc.interview.stage.StageFiles`.

    :param store: where they are.
    """

    def __init__(self, store: FileStore, settings: Settings, metrics: Metrics) -> None:
        self._store = store
        self._limits = ReadLimits.of(settings)
        self._metrics = metrics

    def text(self, digest: str) -> str:
        """The text of a PDF.

        :raises RequestError: it cannot be read, or has none.
        """
        with self._store.path(digest) as path:
            return read_pdf(path, self._limits, self._metrics)

    def picture(self, digest: str) -> tuple[bytes, str]:
        """A picture as a new JPEG, and its type.

        :raises RequestError: it cannot be read.
        """
        with self._store.path(digest) as path:
            return read_image(path, self._limits, self._metrics), JPEG

    def content(self, digest: str) -> bytes:
        """The bytes as they came."""
        with self._store.open(digest) as file:
            return file.read()
