"""Where the apps of this process keep what they keep: a folder that goes with it."""

from __future__ import annotations

import atexit
import shutil
import tempfile

DATA_DIR = tempfile.mkdtemp(prefix="flightsvc-test-data-")
atexit.register(shutil.rmtree, DATA_DIR, ignore_errors=True)
