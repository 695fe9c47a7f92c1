"""HTTP: blueprints to mount in any Flask app, problem details, bearer tokens.

::

    from flightsvc.web import flights_blueprint, health_blueprint, interview_blueprint

    app.register_blueprint(interview_blueprint(), url_prefix="/ai")

Each call makes a new blueprint; mounting one kind twice in one app takes a second ``name``. The
app needs ``FlightSvc(app)`` as well. Errors of these routes are problem details; the app's own
error handlers stay as they are.
"""

from flightsvc.web.board import board_blueprint
from flightsvc.web.flights import flights_blueprint
from flightsvc.web.gateway import gateway_blueprint
from flightsvc.web.health import health_blueprint
from flightsvc.web.interview import interview_blueprint
from flightsvc.web.modules import modules_blueprint
from flightsvc.web.openapi_routes import openapi_blueprint

__all__ = [
    "board_blueprint",
    "flights_blueprint",
    "gateway_blueprint",
    "health_blueprint",
    "interview_blueprint",
    "modules_blueprint",
    "openapi_blueprint",
]
