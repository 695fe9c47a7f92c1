"""gunicorn's logger, writing in the service's own form.

gunicorn's lines and the service's go to the same place (gunicorn's ``--error-logfile``, by default
standard error) in the same form, so that whoever reads one reads the other.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from gunicorn.glogging import Logger
from gunicorn.instrument.statsd import Statsd

from flightsvc.logs import attach, formatter
from flightsvc.serving.master import handed_settings


class ServiceLogger(Statsd):  # type: ignore[misc]
    """The logger of master and workers, set up again at every HUP.

    A Statsd logger, as gunicorn's own becomes one where ``--statsd-host`` is given. Whoever gives
    gunicorn a log configuration of their own has it for everything.
    """

    def setup(self, cfg: Any) -> None:
        """Give gunicorn's handlers the service's form, and the service gunicorn's handlers."""
        super().setup(cfg)
        if cfg.logconfig or cfg.logconfig_dict or cfg.logconfig_json:
            return
        settings = handed_settings()
        if settings is None:
            return
        handlers = list(self.error_log.handlers)
        for handler in handlers:
            if isinstance(handler, logging.StreamHandler):  # syslog has a form of its own
                handler.setFormatter(formatter(settings, handler.stream))
        attach(handlers, self.loglevel)
        if logging.lastResort is not None:  # what other libraries warn of, on standard error
            logging.lastResort.setFormatter(formatter(settings, sys.stderr))

    def access(self, resp: Any, req: Any, environ: Any, request_time: Any) -> None:
        """gunicorn's own access line; numbers only where they are sent somewhere."""
        if self.sock is None:
            Logger.access(self, resp, req, environ, request_time)
        else:
            super().access(resp, req, environ, request_time)
