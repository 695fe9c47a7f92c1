"""Files that strangers send: kept under the hash of their content, read by a process of their own.

What is in a file is never trusted: its type is told by its content, and the libraries that read it
run where they can be killed.
"""

from flightsvc.files.kinds import JPEG, PDF, PNG, WEBP, kind_of
from flightsvc.files.opening import open_file_store
from flightsvc.files.reading import ReadLimits, read_image, read_pdf
from flightsvc.files.store import FileStore, StoredFile

__all__ = [
    "JPEG",
    "PDF",
    "PNG",
    "WEBP",
    "FileStore",
    "ReadLimits",
    "StoredFile",
    "kind_of",
    "open_file_store",
    "read_image",
    "read_pdf",
]
