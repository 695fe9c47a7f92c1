"""Many processes on one database: writers in any order, killed writers, forks."""

from __future__ import annotations

import json
import random

import gevent

from flightsvc.records import Records
from tests.processes import run_python
from tests.records.conftest import Open
from tests.records.samples import PROGRAM, row

ME = ("acme", "s-1")
KEYS = ("a", "b", "c")

WRITES = f"""{PROGRAM}
records = opened(sys.argv[1], database_timeout_ms=30_000)
say("ready")
for key, fence in json.loads(input()):
    say(json.dumps([key, fence, records.write(row(key, fence))]))
"""


def test_two_processes_write_the_same_rows_in_any_order(opened: Open, url: str) -> None:
    dice, records = random.Random(url), opened(url)
    fences = list(range(1, 31))
    writers = [run_python(WRITES, url) for _ in range(2)]
    for number, writer in enumerate(writers):
        assert writer.stdout is not None
        assert writer.stdin is not None
        assert writer.stdout.readline() == "ready\n"
        turns = [(key, fence) for key in KEYS for fence in fences[number::2]]
        dice.shuffle(turns)
        writer.stdin.write(json.dumps(turns) + "\n")
        writer.stdin.flush()
    # meanwhile: what was read once never goes back
    seen = dict.fromkeys(KEYS, 0)
    while any(writer.poll() is None for writer in writers):
        for key in KEYS:
            found = records.find(*ME, "evaluation", key)
            now = found.fence if found is not None else 0
            assert now >= seen[key]
            seen[key] = now
    said = [json.loads(line) for w in writers for line in w.communicate()[0].splitlines()]

    assert len(said) == len(KEYS) * len(fences)
    assert {record.business_key: record.fence for record in records.session(*ME).records} == (
        dict.fromkeys(KEYS, fences[-1])
    )
    assert all(r.value["fence"] == r.fence for r in records.session(*ME).records)
    assert [outcome for _, fence, outcome in said if fence == fences[-1]] == ["written"] * 3
    assert sum(outcome == "stale" for _, _, outcome in said) > 0


STOPS_HALFWAY = f"""{PROGRAM}
from flightsvc.records import tables
records = opened(sys.argv[1])
def half(connection):
    assert tables.write(connection, row("1", 9), 1)
    say("written, not committed")
    input()
records._database.write(half, timeout_s=600)
"""


def test_a_writer_that_is_killed_leaves_nothing_and_holds_up_nobody(opened: Open, url: str) -> None:
    records = opened(url, database_timeout_ms=10_000)
    records.write(row("1", 3))
    killed = run_python(STOPS_HALFWAY, url)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "written, not committed\n"

    found = records.find(*ME, "evaluation", "1")  # reading does not wait for it
    assert found is not None
    assert found.fence == 3
    killed.kill()
    killed.wait()
    assert records.write(row("1", 4)) == "written"
    (left,) = records.session(*ME).records
    assert (left.fence, left.value["fence"]) == (4, 4)


FORKS = f"""{PROGRAM}
import threading
records = opened(sys.argv[1])
records.write(row("before", 1))
pids = []
for number in range(3):
    pid = os.fork()
    if not pid:
        outcomes = [records.write(row(f"child {{number}}", n)) for n in range(1, 6)]
        found = len(records.session("acme", "s-1").records)
        os._exit(0 if outcomes == ["written"] * 5 and found >= 2 else 1)
    pids.append(pid)
for n in range(1, 6):
    records.write(row("parent", n))
ends = [os.waitpid(pid, 0)[1] for pid in pids]
say(json.dumps([ends, records.write(row("after", 1))]))
records.close()
"""


def test_a_fork_shares_no_connection_with_its_parent(opened: Open, url: str) -> None:
    """As with gunicorn's preload_app: the parent has used the database already."""
    program = run_python(FORKS, url)
    said, _ = program.communicate(timeout=60)
    assert json.loads(said) == [[0, 0, 0], "written"]
    assert program.returncode == 0
    keys = {record.business_key for record in opened(url).session(*ME).records}
    assert keys == {"before", "after", "parent", "child 0", "child 1", "child 2"}


def test_many_greenlets_share_few_connections(records: Records) -> None:
    callers = [gevent.spawn(records.write, row(str(number))) for number in range(60)]
    assert [caller.get() for caller in callers] == ["written"] * 60
    assert len(records.session(*ME).records) == 60
    assert records._database.connections_in_use == 0
