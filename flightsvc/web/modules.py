"""`/v1/modules`: operators pause stages and providers, and see what needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from flask import Blueprint, Response, request
from pydantic import BaseModel, ConfigDict, Field

from flightsvc.errors import CoordinationUnavailable, NotFound
from flightsvc.store import StoreError
from flightsvc.store.switches import LONGEST_REASON
from flightsvc.web.body import read_json
from flightsvc.web.extension import Extension
from flightsvc.web.openapi_shapes import ModuleShown, ModulesShown
from flightsvc.web.openapi_terms import OPERATOR, Answer, JsonBody, Operation, json_of
from flightsvc.web.render import render_json
from flightsvc.web.routes import add_route

#: what the switches take, as far as a pattern can say it: not blank, no control characters
PRINTABLE: dict[str, Any] = {
    "maxLength": LONGEST_REASON,
    "pattern": r"^[^\x00-\x1f\x7f-\xa0]*[^\x00-\x20\x7f-\xa0][^\x00-\x1f\x7f-\xa0]*$",
}

Act = Callable[[Extension, str, str], object]


class Because(BaseModel):
    """Why somebody does it."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    #: shown to whoever wonders later
    reason: Annotated[str, Field(json_schema_extra=PRINTABLE)]


def _operation(summary: str, says: str = "", *, because: bool = False) -> Operation:
    return Operation(
        summary=summary,
        says=says,
        tag="Modules",
        who=OPERATOR,
        body=JsonBody(Because, {"reason": "the model talks nonsense"}) if because else None,
        answers=(Answer(200, "The module, as it now stands", json_of(ModuleShown)),),
        problems=(NotFound, CoordinationUnavailable),
    )


ALL = Operation(
    summary="All modules",
    says="As Redis has them, or as they were last known where it is out of reach.",
    tag="Modules",
    who=OPERATOR,
    answers=(Answer(200, "The modules", json_of(ModulesShown)),),
    problems=(NotFound,),
)
ONE = {
    "GET": _operation("One module"),
    "PUT": _operation("Pause a module", "It takes no more calls.", because=True),
    "DELETE": _operation(
        "Resume a module", "It takes calls again; its flag goes, and its failures are forgotten."
    ),
}
ACK = {
    "POST": _operation("A person has come", "The flag goes; a pause stays."),
}
BACK = {
    "PUT": _operation("Roll back a stage", "It asks its former model.", because=True),
    "DELETE": _operation("Restore a stage", "It asks its present model again."),
}


def modules_blueprint(name: str = "modules") -> Blueprint:
    """The operators' routes, below any prefix; without OPERATOR_TOKENS each answers 404.

    :param name: of the blueprint; another one for a second mount in the same app.
    """
    blueprint = Blueprint(name, __name__)
    one = "/v1/modules/<module>"
    add_route(
        blueprint, "/v1/modules", "modules", list_modules, "GET", operations={"GET": ALL}
    )
    switch = _by_method(GET=_show, PUT=_pause, DELETE=_resume)
    add_route(blueprint, one, "module", switch, *ONE, operations=ONE)
    ack = _by_method(POST=_ack)
    add_route(blueprint, f"{one}/ack", "module_ack", ack, *ACK, operations=ACK)
    back = _by_method(PUT=_roll_back, DELETE=_restore)
    add_route(blueprint, f"{one}/rollback", "module_rollback", back, *BACK, operations=BACK)
    return blueprint


def list_modules(service: Extension) -> Response:
    """All modules, as Redis has them, or as they were last known where it is out of reach."""
    service.authenticator.operator(request)
    watch, redis = service.shared.watch, "ok"
    try:
        snapshot = watch.refresh()
    except StoreError as error:
        snapshot, redis = watch.snapshot, error.kind
    names = service.shared.modules.names
    return render_json(
        {
            "modules": [snapshot.describe(name) for name in names],
            "redis": redis,
            "age_s": round(watch.age_s(), 3) if snapshot.read_at else None,
        }
    )


def _by_method(**acts: Act) -> Callable[..., Response]:
    """A view that does what the method stands for, then shows the module."""

    def view(service: Extension, module: str) -> Response:
        operator = service.authenticator.operator(request)
        module = service.shared.modules.resolve(module)
        with _redis("nothing was changed"):
            service.shared.watch.refresh()
        with _redis("it is not known whether it was done"):
            acts["GET" if request.method == "HEAD" else request.method](service, module, operator)
            snapshot = service.shared.watch.refresh()
        return render_json(snapshot.describe(module))

    return view


def _show(_service: Extension, _module: str, _operator: str) -> None:
    return None


def _pause(service: Extension, module: str, operator: str) -> None:
    service.shared.switches.pause(module, by=operator, reason=_reason(service))


def _resume(service: Extension, module: str, operator: str) -> None:
    service.shared.switches.resume(module, by=operator)


def _ack(service: Extension, module: str, operator: str) -> None:
    service.shared.switches.ack(module, by=operator)


def _roll_back(service: Extension, module: str, operator: str) -> None:
    service.shared.switches.roll_back(module, by=operator, reason=_reason(service))


def _restore(service: Extension, module: str, operator: str) -> None:
    service.shared.switches.restore(module, by=operator)


def _reason(service: Extension) -> str:
    return read_json(request, Because, service.settings).reason


@contextmanager
def _redis(known: str) -> Iterator[None]:
    """:raises CoordinationUnavailable: Redis is out of reach; says what is known of the change."""
    try:
        yield
    except StoreError as error:
        raise CoordinationUnavailable(f"{error}; {known}.", retry_after_s=1) from error
