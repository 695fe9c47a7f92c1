"""Composition root: settings → objects → Flask app, by hand, once a worker.

Nothing here opens a socket before it is used in the process that uses it: with ``preload_app``
the app is made in gunicorn's master, and its workers must not share the master's connections.
"""

from __future__ import annotations

import math
import os
import threading
import time
import weakref

import gevent
from flask import Flask
from gevent import Greenlet

from flightsvc.alerts import Alerts, open_channels
from flightsvc.checklist import Checklist, load_checklist
from flightsvc.errors import Draining, SettingsError
from flightsvc.files import FileStore, open_file_store
from flightsvc.flight.patched import require_gevent
from flightsvc.flight.service import SingleFlight
from flightsvc.gateway.service import ChatGateway
from flightsvc.guard import AiCallGuard
from flightsvc.interview.files import StoredFiles
from flightsvc.interview.forgetting import Forgetting
from flightsvc.interview.invoker import InterviewAiInvoker
from flightsvc.metrics import FLIGHTS_IN_FLIGHT, Metrics, ProcessWatch
from flightsvc.providers import Provider, make_models
from flightsvc.records import Records, Retention, open_records
from flightsvc.settings import Settings, load_settings
from flightsvc.settings.adopt import settings_for
from flightsvc.store import open_store
from flightsvc.store.shared import SharedState, Trip
from flightsvc.web import (
    board_blueprint,
    flights_blueprint,
    gateway_blueprint,
    health_blueprint,
    interview_blueprint,
    modules_blueprint,
    openapi_blueprint,
)
from flightsvc.web.auth import Authenticator, TenantOf
from flightsvc.web.extension import EXTENSION
from flightsvc.web.routes import handle_errors

#: Where the master says to its workers which embedded Valkey it runs,
EMBEDDED_URL = "_FLIGHTSVC_EMBEDDED_URL"
#: and which of them they are: a number that the next worker takes over.
WORKER_SLOT = "_FLIGHTSVC_WORKER_SLOT"


class Worker:
    """The objects of one process.

    :param checklist: None: as the settings say.
    """

    def __init__(self, settings: Settings, checklist: Checklist | None = None) -> None:
        settings = with_redis(settings)
        self.pid = os.getpid()
        slot = os.environ.get(WORKER_SLOT) or str(self.pid)
        self.metrics = Metrics.from_settings(settings, worker=slot)
        store = open_store(settings, self.metrics) if settings.mode != "local" else None
        self.flights = SingleFlight(settings, metrics=self.metrics, store=store)
        self.checklist = checklist or load_checklist(settings)
        self.shared = SharedState(
            settings, self.metrics, store, worker=self.flights.worker, trips=self._trip
        )
        self.guard = AiCallGuard(
            settings, self.metrics, self.checklist, shared=self.shared.breakers
        )
        self.models = make_models(settings, self.metrics)
        self.alerts = Alerts(
            settings.namespace,
            self.checklist.codes,
            open_channels(settings),
            self.metrics,
            counters=self.shared.counters,
        )
        self.shared.on_flag(lambda flag: self.alerts.flagged(flag.module, flag.code, flag.failures))
        self.files = open_file_store(settings)
        self.records = open_records(settings, self.metrics, prepare=False)
        self.invoker = InterviewAiInvoker(
            settings,
            self.flights,
            self.guard,
            self.models,
            self.alerts,
            shared=self.shared,
            files=StoredFiles(self.files, settings, self.metrics),
            records=self.records,
        )
        self.gateway = ChatGateway(
            settings, self.flights, self.guard, self.models, self.alerts, shared=self.shared
        )
        self.forgetting = Forgetting(
            self.records, self.files, self.flights, self.invoker.keeping, self.shared
        )
        self.retention = Retention(
            self.records,
            settings.retention_days,
            self.forgetting.files,
            tidy=self.forgetting.leftovers,
        )
        self.watch = ProcessWatch(self.metrics)
        self.metrics.start()
        self.watch.start()
        self.alerts.start()
        self.shared.start()
        self.retention.start()

    def _trip(self, code: str) -> Trip:
        """What failures of a code in a row bring about; none of a list that is not ours."""
        known = self.checklist.codes.get(code)
        return Trip(known.trips_after, known.pauses) if known is not None else Trip()

    def in_flight(self) -> float:
        """How many flights run in this process."""
        return self.metrics.snapshot().get(FLIGHTS_IN_FLIGHT.name, 0)

    def close(self) -> None:
        """Give back what the process holds; the flights close what they share with others."""
        self.retention.close()
        self.shared.watch.close()  # what it sends last may raise a flag, which is an alert
        self.alerts.close()
        self.shared.close()
        self.flights.close()
        self.records.close()
        self.files.close()
        self.models.close()
        self.watch.close()
        self.metrics.close()


class FlightSvc:
    """flightsvc inside a Flask app::

        flightsvc = FlightSvc(app)          # or flightsvc.init_app(app) in an app factory
        flightsvc.flights.run(key, call)    # anywhere in this process

    One object is one configuration; it may serve several apps. Its objects are made on first use
    in each process.

    :param app: the app, if there is one yet.
    :param settings: None: from ``app.config`` (keys ``FLIGHTSVC_…``) and the environment, when an
        app comes; ``app.config`` wins.
    :param tenant_of: the host's own authentication: given a request, the tenant as text, or None
        if nobody is signed in. It takes the place of API_TOKENS. With neither, everybody who
        reaches the app is the same tenant.
    :param checklist: what each failure means; None: as the settings say.
    :raises SettingsError: a setting is wrong, or gevent has not patched the process.
    """

    def __init__(
        self,
        app: Flask | None = None,
        settings: Settings | None = None,
        *,
        tenant_of: TenantOf | None = None,
        checklist: Checklist | None = None,
    ) -> None:
        self._given = (settings, checklist)
        self._settings, self._checklist = self._given
        self._tenant_of = tenant_of
        self._authenticator: Authenticator | None = None
        self._worker: Worker | None = None
        self._making = threading.Lock()
        self._left_pid = 0  # the process that was told to drain or to close
        _extensions.add(self)
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Serve an app: its routes and views find this object. After :meth:`close`, begin anew.

        :raises SettingsError: see the class; or the app has another ``FlightSvc``, or says other
            settings than an app that this one serves already.
        """
        require_gevent()
        if app.extensions.get(EXTENSION, self) is not self:
            raise SettingsError("This app has a FlightSvc already: one app is served by one.")
        if self.draining and self._worker is None:
            self._left_pid = 0
            self._settings, self._checklist = self._given
        self._settings = settings_for(
            app.config, app.name, given=self._given[0], read=self._settings
        )
        self._authenticator = Authenticator(
            self.settings.api_tokens, self._tenant_of, self.settings.operator_tokens
        )
        app.extensions[EXTENSION] = self

    @property
    def settings(self) -> Settings:
        """The settings; read once: at ``init_app``, or before that from the environment alone."""
        if self._settings is None:
            self._settings = load_settings()
        return self._settings

    @property
    def authenticator(self) -> Authenticator:
        """Finds the tenant of a request."""
        if self._authenticator is None:
            raise SettingsError("This FlightSvc serves no app yet: call init_app(app).")
        return self._authenticator

    @property
    def flights(self) -> SingleFlight:
        """One call a key."""
        return self.worker.flights

    @property
    def guard(self) -> AiCallGuard:
        """One safe call."""
        return self.worker.guard

    @property
    def provider(self) -> Provider:
        """The model."""
        return self.worker.models.primary

    @property
    def invoker(self) -> InterviewAiInvoker:
        """The interview's questions to the model."""
        return self.worker.invoker

    @property
    def gateway(self) -> ChatGateway:
        """Foreign clients' chats."""
        return self.worker.gateway

    @property
    def checklist(self) -> Checklist:
        """What each failure means; known to the last answer of a process that stops."""
        if self._checklist is None:
            self._checklist = self.worker.checklist
        return self._checklist

    @property
    def shared(self) -> SharedState:
        """What all workers share beside their flights."""
        return self.worker.shared

    @property
    def files(self) -> FileStore:
        """What was uploaded."""
        return self.worker.files

    @property
    def records(self) -> Records:
        """Answers as rows."""
        return self.worker.records

    @property
    def forgetting(self) -> Forgetting:
        """Deletes what was asked and answered."""
        return self.worker.forgetting

    @property
    def metrics(self) -> Metrics:
        """What is counted."""
        return self.worker.metrics

    @property
    def serves(self) -> bool:
        """Whether there is an app yet."""
        return self._authenticator is not None

    @property
    def draining(self) -> bool:
        """Whether this process was told to stop."""
        return self._left_pid == os.getpid()

    @property
    def worker(self) -> Worker:
        """This process's objects, made now if need be.

        :raises SettingsError: gevent has not patched the process, or there is no Redis.
        :raises Draining: they are closed already.
        """
        worker = self._worker
        if worker is not None and worker.pid == os.getpid():
            return worker
        with self._making:
            return self._make_worker()

    def _make_worker(self) -> Worker:
        worker = self._worker
        if worker is None or worker.pid != os.getpid():  # a fork inherits objects, not their owner
            if self.draining:
                raise Draining
            require_gevent()
            worker = self._worker = Worker(self.settings, self._checklist)
        return worker

    def drain(self, grace_s: float | None = None) -> None:
        """Take no new work and let what runs end in time; what does not is handed on.

        Returns when nothing runs any more, or the time is over.

        :param grace_s: time in s that running work is given at most; None, or more: GRACE_S.
            Less time cuts a draining short that goes on already.
        """
        self._left_pid = os.getpid()
        worker = self._worker
        if worker is None or worker.pid != self._left_pid:
            return
        grace_s = min(self.settings.grace_s, math.inf if grace_s is None else grace_s)
        limit = time.monotonic() + grace_s
        worker.flights.drain(grace_s)
        while worker.in_flight() and time.monotonic() < limit:
            gevent.sleep(0.02)

    def close(self) -> None:
        """Give back what this process holds. Later requests are told to ask elsewhere."""
        self._left_pid = os.getpid()
        worker, self._worker = self._worker, None
        if worker is not None and worker.pid == self._left_pid:
            worker.close()


_extensions: weakref.WeakSet[FlightSvc] = weakref.WeakSet()


def create_app(settings: Settings | None = None, checklist: Checklist | None = None) -> Flask:
    """The service: every route at its own address, every error a problem.

    :param settings: None: from the environment.
    :param checklist: None: as the settings say.
    :raises SettingsError: a setting is wrong, or gevent has not patched the process.
    """
    app = Flask("flightsvc", static_folder=None)
    service = FlightSvc(app, settings, checklist=checklist)
    app.register_blueprint(interview_blueprint())
    app.register_blueprint(gateway_blueprint())
    app.register_blueprint(flights_blueprint())
    app.register_blueprint(health_blueprint())
    app.register_blueprint(openapi_blueprint())
    if service.settings.operator_tokens:
        app.register_blueprint(modules_blueprint())
        app.register_blueprint(board_blueprint())
    handle_errors(app)
    return app


def open_worker(app: Flask | None = None) -> None:
    """Make an app's objects in this process now, so that a fault stops the start.

    :param app: None: each app of this process.
    :raises SettingsError: see ``FlightSvc.worker``.
    """
    for service in [app.extensions[EXTENSION]] if app is not None else list(_extensions):
        if service.serves and not service.draining:
            service.worker.records.prepare()


def drain_worker(grace_s: float | None = None) -> list[Greenlet[..., None]]:
    """Begin to drain this process; returns at once, as a signal handler must.

    :param grace_s: see ``FlightSvc.drain``.
    :returns: what drains; join it to know when the draining has ended.
    """
    return [Greenlet.spawn(service.drain, grace_s) for service in list(_extensions)]


def close_worker(app: Flask | None = None) -> None:
    """Give back what this process holds; the last thing that a worker does.

    :param app: the app that ends; None: all of this process.
    """
    service = app.extensions.get(EXTENSION) if app is not None else None
    for ending in [service] if service is not None else list(_extensions):
        ending.close()


def with_redis(settings: Settings) -> Settings:
    """The settings with the address of the embedded Valkey, where no other Redis is named.

    :raises SettingsError: there is none, and the mode is not `local`.
    """
    if settings.redis_url or settings.mode == "local":
        return settings
    embedded = os.environ.get(EMBEDDED_URL)
    if not embedded:
        raise SettingsError(
            "FLIGHTSVC_REDIS_URL is not set, and no embedded Valkey runs: set it, start by "
            "`gunicorn -c gunicorn.conf.py wsgi:app`, or set FLIGHTSVC_MODE=local."
        )
    return settings.model_copy(update={"redis_url": embedded})
