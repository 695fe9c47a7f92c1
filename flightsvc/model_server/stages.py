"""Which stage of the interview a request looks like."""

from __future__ import annotations

from flightsvc.model_server.script import Call

#: a name that only this stage's prompt has, as a field of its answer or a workflow's parameter
_SIGNS = (
    ("demeanor", ('"panic_level"',), ()),
    ("extraction", ('"resume_score"',), ("question_count",)),
    ("follow_up", ('"needed"',), ("follow_up_count", "max_follow_up")),
)
_IMAGES = (".jpeg", ".jpg", ".png", ".webp")


def stage_of(call: Call) -> str:
    """The stage that a request looks like; ``evaluation`` if it looks like none."""
    if str(call.parameters.get("USER_FILE", "")).endswith(_IMAGES):
        return "demeanor"
    system = "\n".join(each.content for each in call.messages if each.role == "system")
    for stage, fields, parameters in _SIGNS:
        if any(name in system for name in fields) or call.parameters.keys() & set(parameters):
            return stage
    return "extraction" if "USER_FILE" in call.parameters else "evaluation"
