"""``python -m flightsvc``."""

import sys

from flightsvc.cli import main

sys.exit(main())
