"""gunicorn's logger, writing in the service's own form.

gunicorn's lines and the service's go to the same place (gunicorn's ``--error-logfile``, by default
standard error) in the same form, so that whoever reads one reads the other.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import sys
from contextlib import suppress
from typing import Any

import gevent
from gunicorn.glogging import Logger
from gunicorn.instrument.statsd import Statsd

from flightsvc.logs import attach, formatter
from flightsvc.metrics.recorder import clean_prefix
from flightsvc.serving.master import handed_settings


class ServiceLogger(Statsd):  # type: ignore[misc]
    """The logger of master and workers, set up again at every HUP.

    A Statsd logger, as gunicorn's own becomes one where ``--statsd-host`` is given: its numbers
    go where the service's go, under the same prefix, unless gunicorn is told otherwise. Its own
    looks the host up before it does anything else, and waits; this one looks in the background,
    and numbers are lost meanwhile. Whoever gives gunicorn a log configuration of their own has it
    for everything.
    """

    def __init__(self, cfg: Any) -> None:
        self.sock: socket.socket | None = None
        self._host: tuple[str, int] | str | None = None
        self._looks: int | None = None  # the process that looks the host up
        self.prefix = ""
        self.dogstatsd_tags = cfg.dogstatsd_tags
        Logger.__init__(self, cfg)  # not Statsd's: see above

    def setup(self, cfg: Any) -> None:
        """Give gunicorn's handlers the service's form, and the service gunicorn's handlers."""
        super().setup(cfg)
        self._send_to(cfg)
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
        if self._host is None:
            Logger.access(self, resp, req, environ, request_time)
        else:
            super().access(resp, req, environ, request_time)

    def _send_to(self, cfg: Any) -> None:
        """Where the numbers go from now on."""
        settings = handed_settings()
        host, prefix = cfg.statsd_host, cfg.statsd_prefix
        if host is None and settings is not None and settings.statsd_host:
            host = (settings.statsd_host, settings.statsd_port)
            prefix = prefix or clean_prefix(settings.statsd_prefix)
        self._host, self.prefix = host, prefix.rstrip(".") + "." if prefix else ""
        self.sock = self._looks = None

    def _sock_send(self, msg: str) -> None:
        if self.sock is None and self._host is not None and self._looks != os.getpid():
            self._looks = os.getpid()
            self._connect()
        if self.sock is not None:
            tags = f"|#{self.dogstatsd_tags}" if self.dogstatsd_tags else ""
            with suppress(OSError):  # gunicorn would log each of them; the metrics do, once
                self.sock.send(f"{msg}{tags}".encode("ascii", "replace"))

    def _connect(self) -> None:
        """Open the socket; at once where nothing needs looking up."""
        host = self._host
        if isinstance(host, str):  # the path of a unix socket
            self._open(socket.AF_UNIX, host)
        elif host is not None:
            try:
                address = ipaddress.ip_address(host[0])
            except ValueError:
                gevent.spawn(self._look_up, host)
            else:
                self._open(socket.AF_INET if address.version == 4 else socket.AF_INET6, host)

    def _look_up(self, host: tuple[str, int]) -> None:
        try:
            found = socket.getaddrinfo(*host, type=socket.SOCK_DGRAM)
        except (OSError, ValueError):  # the service's own metrics say so in the log, and go on
            return
        if host == self._host:
            self._open(found[0][0], found[0][4])

    def _open(self, family: int, address: Any) -> None:
        try:
            sock = socket.socket(family, socket.SOCK_DGRAM)
            sock.connect(address)
        except OSError:
            return
        self.sock = sock
