"""A gunicorn configuration of the backend's own, with what flightsvc needs of it."""

from gevent import monkey

monkey.patch_all()

from flightsvc import serving

bind = "0.0.0.0:8000"  # the backend has a login
workers = 2
worker_class = "gevent"
graceful_timeout = 30  # 5 s more than FLIGHTSVC_GRACE_S: what still runs by then is handed on

post_worker_init = serving.post_worker_init
worker_exit = serving.worker_exit
