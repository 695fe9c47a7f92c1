"""gunicorn's configuration, for an installed package::

gunicorn -c python:flightsvc.gunicorn_conf flightsvc.wsgi:app
"""

from gevent import monkey

monkey.patch_all()

from flightsvc.serving import configure

globals().update(configure())
