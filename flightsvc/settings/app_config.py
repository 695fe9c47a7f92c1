"""Settings in a Flask app's ``app.config``, as the environment would hold them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

#: settings by which gunicorn starts its workers, before there is an app
OF_GUNICORN = ("bind", "workers", "worker_connections")


class Found(NamedTuple):
    """What a configuration says.

    :param texts: its values, by name, as an environment variable would hold them.
    :param problems: sentences about values that cannot be settings.
    """

    texts: dict[str, str]
    problems: list[str]


def read_config(config: Mapping[str, Any], prefix: str) -> Found:
    """The names that begin with ``prefix``; one that is None is not given.

    :param config: text as in the environment, or Python's own numbers, lists and dicts.
    """
    found = Found({}, [])
    for name in sorted(name for name in config if str(name).upper().startswith(prefix)):
        value = config[name]
        try:
            if value is not None:
                found.texts[name] = _text(value)
        except TypeError:
            kind = type(value).__name__
            found.problems.append(
                f"{name} in app.config is of type {kind}: give text, a number, a list or a dict."
            )
    return found


def _text(value: Any) -> str:
    """:raises TypeError: it is nothing that a setting can be."""
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(dict(value) if isinstance(value, Mapping) else value)
    raise TypeError


def too_late(config: Mapping[str, str], environ: Mapping[str, str], prefix: str) -> list[str]:
    """Sentences about settings of gunicorn that are not the environment's too."""
    names = [prefix + name.upper() for name in OF_GUNICORN]
    return [
        f"{name} in app.config comes too late, gunicorn starts by it: set it in the environment."
        for name in names
        if name in config and config[name] != environ.get(name)
    ]
