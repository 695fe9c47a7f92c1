"""What the blueprints need of the app that they are mounted in."""

from __future__ import annotations

from typing import Protocol, cast

from flask import current_app

from flightsvc.checklist import Checklist
from flightsvc.errors import SettingsError
from flightsvc.files import FileStore
from flightsvc.flight.service import SingleFlight
from flightsvc.gateway.service import ChatGateway
from flightsvc.guard import AiCallGuard
from flightsvc.interview.forgetting import Forgetting
from flightsvc.interview.invoker import InterviewAiInvoker
from flightsvc.metrics import Metrics
from flightsvc.records import Records
from flightsvc.settings import Settings
from flightsvc.store.shared import SharedState
from flightsvc.web.auth import Authenticator

EXTENSION = "flightsvc"


class Extension(Protocol):
    """What ``FlightSvc`` offers to the routes."""

    @property
    def settings(self) -> Settings: ...
    @property
    def authenticator(self) -> Authenticator: ...
    @property
    def draining(self) -> bool: ...
    @property
    def flights(self) -> SingleFlight: ...
    @property
    def guard(self) -> AiCallGuard: ...
    @property
    def invoker(self) -> InterviewAiInvoker: ...
    @property
    def gateway(self) -> ChatGateway: ...
    @property
    def checklist(self) -> Checklist: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def shared(self) -> SharedState: ...
    @property
    def files(self) -> FileStore: ...
    @property
    def records(self) -> Records: ...
    @property
    def forgetting(self) -> Forgetting: ...


def extension() -> Extension:
    """The ``FlightSvc`` of the app that handles this request.

    :raises SettingsError: the app has none.
    """
    try:
        return cast("Extension", current_app.extensions[EXTENSION])
    except KeyError:
        raise SettingsError(
            "This app mounts a blueprint of flightsvc without the extension: call FlightSvc(app)."
        ) from None
