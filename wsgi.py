"""The service as a WSGI app: ``gunicorn -c gunicorn.conf.py wsgi:app``."""

from flightsvc.wsgi import app

__all__ = ["app"]
