"""The service as a WSGI app, for an installed package: ``flightsvc.wsgi:app``."""

from flightsvc.app import create_app
from flightsvc.serving import handed_checklist, handed_settings

#: under gunicorn with the settings and checklist of its master, elsewhere with those of the
#: environment
app = create_app(handed_settings(), handed_checklist())
