"""The Valkey that starts where no Redis is configured.

``valkey`` holds the handle that the gunicorn master keeps, ``folder`` the private folder that the
server lives in, and ``supervisor`` the small process between the two.
"""

from flightsvc.embedded.valkey import EmbeddedValkey, server_binary

__all__ = ["EmbeddedValkey", "server_binary"]
