"""Every script opens with the same lines, and they are true."""

from __future__ import annotations

from pathlib import Path

import pytest

from flightsvc.flight import verbs
from flightsvc.flight.state import Action
from flightsvc.store import Verb, scripts
from flightsvc.store import verbs as shared_verbs
from tests.protocol.header import Header, faults, read

VERBS = (*verbs.ALL, *shared_verbs.ALL)
ALL = [pytest.param(verb, id=verb.name) for verb in VERBS]

GOOD = """-- Purpose:  say that a flight is there.
-- KEYS[1]   meta      hash        the flight's state
-- KEYS[2]   live      sorted set  flight id -> heartbeat (ms)
-- ARGV[1]   token              of the owning flight object
-- ARGV[2]   live_ttl_ms        TTL of everything
-- Returns   {OK | STALE}
-- Keeps     invariants 2, 5

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000
end

if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return {'STALE'} end
redis.call('ZADD', KEYS[2], now_ms(), ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return {'OK'}
"""
VERB = Verb("sample", keys=("meta", "live"), args=("token", "live_ttl_ms"))

#: what is replaced in the good sample, by what, and a word of the fault that must be found
BAD = {
    "no purpose": ("-- Purpose:  say that a flight is there.\n", "", "fixed form"),
    "no full stop": ("is there.", "is there", "fixed form"),
    "no type": ("hash        the", "            the", "no number, name, type"),
    "unknown type": ("hash  ", "table ", "no number, name, type"),
    "no meaning": ("       of the owning flight object", "", "no number, name and meaning"),
    "wrong order": (
        "-- Returns   {OK | STALE}\n-- Keeps     invariants 2, 5\n",
        "-- Keeps     invariants 2, 5\n-- Returns   {OK | STALE}\n",
        "fixed form",
    ),
    "no keeps": ("-- Keeps     invariants 2, 5\n", "", "fixed form"),
    "no blank line": ("2, 5\n\n", "2, 5\n", "fixed form"),
    "another key": ("meta ", "mata ", "but the verb has"),
    "another argument": ("token  ", "secret ", "but the verb has"),
    "skipped number": ("ARGV[2]   live", "ARGV[3]   live", "but the verb has"),
    "one too many": (
        "-- Returns",
        "-- ARGV[3]   id                 flight id\n-- Returns",
        "ARGV[3] is never used",
    ),
    "key unused": ("', KEYS[2]", "', KEYS[1]", "KEYS[2] is never used"),
    "key undeclared": ("'HGET', KEYS[1]", "'HGET', KEYS[3]", "KEYS[3] is not in the header"),
    "argument unused": ("KEYS[2], ARGV[2]", "KEYS[2], 100", "ARGV[2] is never used"),
    "no such invariant": ("2, 5", "2, 15", "invariants"),
    "invariants unordered": ("2, 5", "5, 2", "invariants"),
    "one of several": ("invariants 2, 5", "invariants 2", "one invariant or several"),
    "unnamed answer": ("{OK | STALE}", "{OK}", "returns STALE"),
    "answer never given": ("{OK | STALE}", "{OK | STALE | LOST}", "never does"),
    "unknown answer": ("{OK | STALE}", "{OK | STALE | HGET}", "neither an Ack"),
    "no unit": ("live_ttl_ms ", "live_ttl    ", "no unit"),
    "built key": ("'PEXPIRE', KEYS[2]", "'PEXPIRE', KEYS[2] .. ':x'", "could be built"),
    "named key": ("'PEXPIRE', KEYS[2]", "'PEXPIRE', 'live'", "no key that was given"),
    "handed key": ("'PEXPIRE', KEYS[2]", "'PEXPIRE', ARGV[1]", "no key that was given"),
    "hidden command": ("'PEXPIRE', KEYS[2]", "command, KEYS[2]", "no plain word"),
    "keys": ("'PEXPIRE', KEYS[2]", "'KEYS', KEYS[2]", "KEYS is not allowed"),
    "scan": ("'PEXPIRE', KEYS[2]", "'SCAN', KEYS[2]", "SCAN is not allowed"),
    "time outside": ("now_ms(), ARGV", "redis.call('TIME')[1], ARGV", "now_ms or now_us"),
    "another name": ("function now_ms()", "function clock()", "now_ms or now_us"),
    "host's time": ("t[1] * 1000", "os.time() * 1000", "now_ms or now_us"),
}


@pytest.mark.parametrize("verb", ALL)
def test_every_script_has_a_true_header(verb: Verb) -> None:
    assert faults(scripts.source(verb.name).decode(), verb) == []


@pytest.mark.parametrize("sample", BAD)
def test_the_check_notices(sample: str) -> None:
    old, new, word = BAD[sample]
    assert old in GOOD

    found = faults(GOOD.replace(old, new), VERB)

    assert any(word in fault for fault in found), found


def test_the_check_accepts_the_good_sample() -> None:
    assert faults(GOOD, VERB) == []
    assert faults("#!lua flags=allow-oom\n" + GOOD, VERB) == []


def test_the_verbs_are_all_the_scripts_and_no_more() -> None:
    folder = scripts.folder()
    assert isinstance(folder, Path)
    files = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))

    assert files == sorted(f"{verb.name}.lua" for verb in VERBS)
    assert len({verb.name for verb in VERBS}) == len(VERBS)


def test_a_key_is_of_one_type_in_all_headers() -> None:
    types: dict[str, set[str]] = {}
    for verb in VERBS:
        header = read(scripts.source(verb.name).decode())
        assert isinstance(header, Header)
        for key in header.keys:
            types.setdefault(key.name, set()).add(key.type)

    assert {name: len(said) for name, said in types.items()} == dict.fromkeys(types, 1)


def test_acquire_names_every_action() -> None:
    header = read(scripts.source("acquire").decode())
    assert isinstance(header, Header)
    assert [action for action in Action if action.value not in header.returns] == []
