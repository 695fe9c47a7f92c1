"""Settings from an app's configuration, the environment and a TOML file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from flightsvc.errors import SettingsError
from flightsvc.settings import ENV_PREFIX
from flightsvc.settings.app_config import read_config, too_late
from flightsvc.settings.layers import has, merged
from flightsvc.settings.model import Settings
from flightsvc.settings.stage import STAGE_DEFAULTS, StageSettings
from flightsvc.settings.wording import Path, explain, nearest, refusal

#: names the TOML file
CONFIG = ENV_PREFIX + "CONFIG"
#: variables of the project's own tests; no settings
TEST_PREFIX = ENV_PREFIX + "TEST_"
#: variables that Kubernetes sets in every pod for a service named flightsvc or flightsvc-…
_SERVICE_LINK = re.compile(
    r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
#: settings that a variable gives as JSON, with an example
JSON_EXAMPLES = {
    "alert_email_to": '["ops@example.com"]',
    "api_tokens": '{"token": "tenant"}',
    "operator_tokens": '{"token": "name"}',
    "custom_stages": '["scoring"]',
    "stages": '{"evaluation": {"timeout_ms": 20000}}',
    "retry_delays_ms": "[100, 300]",
}
STAGE_EXAMPLE = '{"timeout_ms": 20000}'


class _Source(BaseSettings, Settings):
    """The fields of ``Settings`` for pydantic-settings' readers; never made into an object."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, env_nested_delimiter="__")


def env_name(path: Path) -> str:
    """The variable of a setting."""
    return ENV_PREFIX + "__".join(path).upper()


_TOKENS = (env_name(("api_tokens",)), env_name(("operator_tokens",)))


def load(environ: Mapping[str, str] | None, config: Mapping[str, Any] | None) -> Settings:
    """See :func:`flightsvc.settings.load_settings`."""
    environ = os.environ if environ is None else environ
    theirs, in_app = read_config(config or {}, ENV_PREFIX), " in app.config"
    ours, apps = _ours(environ), _ours(theirs.texts)
    file = theirs.texts.get(CONFIG, environ.get(CONFIG, ""))
    in_file = _read_file(file) if file else {}
    stages = [*STAGE_DEFAULTS, *_custom_stages({**ours, **apps}, in_file)]
    problems = [
        *_miswritten(environ),
        *_miswritten(theirs.texts, in_app),
        *theirs.problems,
        *too_late(apps, environ, ENV_PREFIX),
        *_env_problems(ours, stages),
        *_env_problems(apps, stages, in_app),
        *_file_problems(in_file, file, stages),
    ]
    if problems:
        raise refusal(problems)
    in_env, in_config = _read_env(ours), _read_env(apps)

    def spell(path: Path) -> str:
        if has(in_config, path):
            return _variable(apps, path) + in_app
        if has(in_file, path) and not has(in_env, path):
            return f"{'.'.join(path)} in {file}"
        return _variable(ours, path)

    try:
        return Settings.model_validate(merged(merged(in_file, in_env), in_config))
    except ValidationError as error:
        raise refusal(explain(error, Settings, spell)) from None


def _ours(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings among variables."""
    # sorted, so that FLIGHTSVC_STAGES__X comes before FLIGHTSVC_STAGES__X__TIMEOUT_MS
    return {name: environ[name] for name in sorted(environ) if _is_ours(name, environ)}


def _miswritten(environ: Mapping[str, str], where: str = "") -> Iterator[str]:
    """Variables that would be ours in capitals."""
    for name in sorted(environ):
        if name.upper().startswith(ENV_PREFIX) and not name.startswith(ENV_PREFIX):
            yield f"{name}{where} is not read: write it in capitals, {name.upper()}."


def _is_ours(name: str, environ: Mapping[str, str]) -> bool:
    """Whether a variable should be a setting: neither for the tests nor set by Kubernetes."""
    if not name.startswith(ENV_PREFIX) or name == CONFIG or name.startswith(TEST_PREFIX):
        return False
    service = name.removesuffix("_PORT")
    is_link = service != name and f"{service}_SERVICE_HOST" in environ
    return not is_link and not _SERVICE_LINK.fullmatch(name)


def _read_file(file: str) -> dict[str, Any]:
    path = FilePath(file).expanduser()
    try:
        if not path.is_file():
            raise SettingsError(f"{CONFIG} names {file}, which is no file: correct or unset it.")
        return TomlConfigSettingsSource(_Source, path).toml_data
    except OSError as error:
        raise SettingsError(f"{CONFIG} names {file}, which cannot be read: {error}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{CONFIG} names {file}, which is not UTF-8: save it so.") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{CONFIG} names {file}, which is not TOML: {error}.") from None


def _read_env(ours: Mapping[str, str]) -> dict[str, Any]:
    source = EnvSettingsSource(_Source)
    source.env_vars = {name.lower(): value for name, value in ours.items()}
    return source()


def _custom_stages(ours: Mapping[str, str], in_file: Mapping[str, Any]) -> list[str]:
    """The user's own stages, as far as they can be read; faults are told later."""
    found = in_file.get("custom_stages", [])
    with contextlib.suppress(KeyError, ValueError):
        found = json.loads(ours[env_name(("custom_stages",))])
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _env_problems(ours: Mapping[str, str], stages: list[str], where: str = "") -> Iterator[str]:
    """Variables that are no settings, and values that are not the JSON they should be."""
    known: dict[str, str] = {}
    for field in Settings.model_fields:
        known[env_name((field,))] = JSON_EXAMPLES.get(field, "")
    for stage in stages:
        known[env_name(("stages", stage))] = STAGE_EXAMPLE
        for field in StageSettings.model_fields:
            known[env_name(("stages", stage, field))] = JSON_EXAMPLES.get(field, "")
    for name, value in ours.items():
        tokens = next((one for one in _TOKENS if name.startswith(one + "__")), None)
        if tokens:  # the rest of the name is a token
            yield f"{tokens}__…{where} is no setting: write all tokens as JSON into {tokens}."
        elif name not in known:
            near = _nearest_variable(name, known)
            yield _unknown(name + where, near, env_name(("custom_stages",)))
        elif known[name] and (fault := _json_fault(value)):
            yield f"{name}{where} is not JSON ({fault}): write it like {known[name]}."


def _nearest_variable(name: str, known: Iterable[str]) -> str | None:
    """Compared without the prefix, which makes any two names alike, and without case."""
    rest = name.removeprefix(ENV_PREFIX).upper()
    found = nearest(rest, [one.removeprefix(ENV_PREFIX) for one in known])
    return found and ENV_PREFIX + found


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # of two equal tokens only one would count; the name itself may be a secret
    if len(dict(pairs)) != len(pairs):
        raise ValueError("an object has one name twice")
    return dict(pairs)


def _json_fault(text: str) -> str:
    try:
        json.loads(text, object_pairs_hook=_each_once)
    except json.JSONDecodeError as error:
        return f"{error.msg}, column {error.pos + 1}"
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


def _file_problems(in_file: Mapping[str, Any], file: str, stages: list[str]) -> Iterator[str]:
    """Keys of the file that are no settings."""
    known: list[Path] = [(field,) for field in Settings.model_fields]
    known += [("stages", stage) for stage in stages]
    known += [("stages", stage, field) for stage in stages for field in StageSettings.model_fields]
    names = {".".join(path) for path in known}
    for path in _paths(in_file):
        name = ".".join(path)
        if name not in names:
            yield _unknown(f"{name} in {file}", nearest(name, names), "custom_stages")


def _paths(in_file: Mapping[str, Any]) -> Iterator[Path]:
    """The keys of the file; below ``stages`` those of each stage that is known or empty too."""
    for key, value in in_file.items():
        if key != "stages" or not isinstance(value, dict):
            yield (key,)
            continue
        for stage, own in value.items():
            fields = own if isinstance(own, dict) else {}
            yield from ((key, stage, field) for field in fields)
            if not fields:
                yield (key, stage)


def _unknown(name: str, near: str | None, custom_stages: str) -> str:
    if near:
        hint = f"did you mean {near}?"
    else:
        hint = "correct or remove it."
    if "stages" in name.lower():
        hint += f" A stage of your own must be named in {custom_stages}."
    return f"{name} is no setting: {hint}"


def _variable(ours: Mapping[str, str], path: Path) -> str:
    """The variable that gives this setting: its own, or one with JSON around it."""
    for length in range(len(path), 0, -1):
        name = env_name(path[:length])
        if name in ours:
            return f"{name} ({'.'.join(path[length:])})" if length < len(path) else name
    return env_name(path)
