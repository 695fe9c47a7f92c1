"""gunicorn's configuration: ``gunicorn -c gunicorn.conf.py wsgi:app``.

Everything comes from the FLIGHTSVC_ settings; what is given on the command line wins.
"""

from gevent import monkey

monkey.patch_all()

from flightsvc.serving import configure

globals().update(configure())
