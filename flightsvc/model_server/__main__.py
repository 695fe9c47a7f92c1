"""``python -m flightsvc.model_server``: the same as ``flightsvc model-server``."""

import sys

from flightsvc.model_server.cli import main

if __name__ == "__main__":
    sys.exit(main())
