"""The service under gunicorn: what its master and its workers do beside answering requests.

A configuration file is two lines, because gevent must patch before anything else is imported:
``gunicorn.conf.py`` at the top of a checkout, :mod:`flightsvc.gunicorn_conf` in an installed
package. Everything else stands here: ``master`` and ``worker`` hold the hooks of either side,
``addresses`` knows who can reach the service.

A configuration of your own needs the two hooks of a worker: ``from flightsvc.serving import
post_worker_init, worker_exit``.
"""

from flightsvc.serving.master import configure, handed_checklist, handed_settings
from flightsvc.serving.worker import post_worker_init, worker_exit

__all__ = [
    "configure",
    "handed_checklist",
    "handed_settings",
    "post_worker_init",
    "worker_exit",
]
