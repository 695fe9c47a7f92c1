"""What may stand in an address."""

from __future__ import annotations

import re

SESSION_ID = re.compile(r"[A-Za-z0-9._~:@-]{1,128}")
FLIGHT_ID = re.compile(r"[0-9a-f]{32}")
