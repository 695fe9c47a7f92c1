"""What the scripts of the small shared things are called with, in order.

As in ``flight/verbs.py``, a test compares the headers in ``lua/``.
"""

from __future__ import annotations

from flightsvc.store.scripts import Verb

SNAPSHOT = Verb("snapshot", keys=("switches", "hints", "streaks", "forgotten"), args=())
SWITCH_ON = Verb("switch_on", keys=("switches",), args=("field", "record", "keep"))
SWITCH_OFF = Verb(
    "switch_off", keys=("switches", "streaks"), args=("module",), each_args=("field",)
)
FLAG = Verb(
    "flag",
    keys=("switches", "streaks"),
    args=("streak", "limit", "flag_field", "flag", "pause_field", "pause"),
)
HINT = Verb("hint", keys=("hints",), args=(), each_args=("target", "open_ms"))
TAKE = Verb("take", keys=("lease",), args=("token", "lease_ms"))
KEEP = Verb("keep", keys=("lease",), args=("token", "lease_ms"))
GIVE_BACK = Verb("give_back", keys=("lease",), args=("token",))
TALLY = Verb(
    "tally",
    keys=("streaks",),
    args=("streaks_ttl_ms", "outcomes"),
    each_keys=("count",),
    each_args=("window_ms", "times"),
)
EMIT = Verb("emit", keys=("events",), args=("ttl_ms", "most"), each_args=("kind", "event"))

TELL_FORGOTTEN = Verb("tell_forgotten", keys=("forgotten",), args=("ttl_ms",), each_args=("id",))
REMEMBER = Verb("remember", keys=(), args=("ttl_ms",), each_keys=("answer",), each_args=("value",))
RECALL = Verb("recall", keys=("answer",), args=())

ALL = (
    SNAPSHOT,
    SWITCH_ON,
    SWITCH_OFF,
    FLAG,
    HINT,
    TAKE,
    KEEP,
    GIVE_BACK,
    TALLY,
    EMIT,
    REMEMBER,
    RECALL,
    TELL_FORGOTTEN,
)
