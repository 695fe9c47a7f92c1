"""Whether gevent has patched the process, as everything here takes for granted."""

from __future__ import annotations

from gevent import monkey

from flightsvc.errors import SettingsError


def require_gevent() -> None:
    """:raises SettingsError: this process would block where it should wait."""
    if not (monkey.is_module_patched("socket") and monkey.is_module_patched("threading")):
        raise SettingsError(
            "gevent has not patched this process. Start the service by "
            "`gunicorn -c gunicorn.conf.py wsgi:app`; in a program of your own, begin it with "
            "`from gevent import monkey; monkey.patch_all()`, before any other import."
        )
