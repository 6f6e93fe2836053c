"""Workers that are killed, crash, hang or take too much: what the reader is told, and that the others go on."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.errors import ReadError, WorkEnded
from inspector.jobs.client import Client, Running
from inspector.jobs.job import Job
from inspector.jobs.kinds.table import kind_named
from inspector.jobs.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="walls of memory stand on Linux"),
    pytest.mark.xdist_group("workers"),
]
LONG = 120.0


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Two workers with 3 GB for all of them."""
    found = Client(
        Settings(
            workers=2,
            memory_nbytes=3 * 10**9,
            threads=1,
            results=tmp_path_factory.mktemp("jobs") / "results",
            alone_seconds=0.5,
        )
    )
    yield found
    found.close()


def _ask(client: Client, how: str, amount: float = 0.0, *, kind: str = "trial", visitor: str = "") -> Running:
    return client.ask(Job(kind=kind, arguments=(how, amount)), visitor=visitor)


def _ended(running: Running) -> Running:
    assert running.wait(LONG)
    return running


def test_a_result_comes_and_an_error_is_the_one_that_was_raised(client: Client) -> None:
    assert _ended(_ask(client, "ping")).result == "ping"
    failed = _ended(_ask(client, "fail"))
    assert isinstance(failed.error, ReadError)
    assert str(failed.error) == "The trial was to fail. It did."
    assert isinstance(_ended(_ask(client, "raise")).error, ZeroDivisionError)


@pytest.mark.parametrize(
    ("how", "amount", "says"),
    [
        ("allocate", 50e9, "needed more than the 200 MB of memory that one job may take here"),
        ("grow", 2e9, "needed more than the 200 MB of memory"),
        ("need", 10e9, "would take about 10.2 GB of memory; one job may take 3.00 GB here"),
        ("segfault", 0, "crashed (segmentation fault)"),
        ("abort", 0, "was aborted"),
        ("kill", 0, "ended by the system"),
        ("loop", 3600, "was ended after 2.0 s"),
    ],
)
def test_who_behaves_badly_is_told_why_and_nobody_else_notices(
    client: Client, how: str, amount: float, says: str
) -> None:
    other = _ask(client, "sleep", 1.0, visitor="somebody else")
    bad = _ended(_ask(client, how, amount, visitor="me", kind="short-trial" if how == "loop" else "trial"))
    assert isinstance(bad.error, WorkEnded)
    assert says in bad.error.says and bad.error.says.startswith("The trial ") and bad.error.hint
    assert _ended(other).result == "sleep"
    assert _ended(_ask(client, "ping")).result == "ping"


def test_memory_that_was_asked_for_is_there(client: Client) -> None:
    assert _ended(_ask(client, "need", 5e8)).result == "need"


def test_two_that_want_most_of_it_come_one_after_the_other(client: Client) -> None:
    both = [_ask(client, "need", 1.9e9 + n) for n in range(2)]
    assert [_ended(one).result for one in both] == ["need", "need"]


def test_what_workers_keep_goes_for_a_job_that_needs_the_room(client: Client) -> None:
    """Also what the job's own worker keeps: it begins again in another one."""
    client.say_visitors(1)
    for near in ("", "trial"):
        assert _ended(_ask(client, "hold", 170e6 + len(near))).result == "hold"
        running = client.ask(Job(kind="trial", arguments=("need", 2.7e9 + len(near)), near=near))
        assert _ended(running).result == "need"


def test_stop_is_heard_by_work_that_reports_and_ends_work_that_does_not(client: Client) -> None:
    for how in ("sleep", "loop"):
        running = _ask(client, how, 1000.0)
        while not running.begun:
            time.sleep(0.01)
        running.stop()
        assert _ended(running).stopped and running.result is None


def test_who_waits_is_told_the_place_and_a_visitors_long_jobs_come_one_by_one(client: Client) -> None:
    first = _ask(client, "sleep", 3.0, kind="long-trial", visitor="me")
    second = _ask(client, "sleep", 3.1, kind="long-trial", visitor="me")
    short = _ask(client, "ping", visitor="me")
    assert _ended(short).result == "ping"  # A worker is free of long jobs.
    assert not first.ended.is_set() and not second.begun and second.place == 1
    assert _ended(first).result == "sleep" and not second.ended.is_set()
    assert _ended(second).result == "sleep" and second.place == 0


def test_a_broker_that_is_killed_is_started_again_and_its_jobs_with_it(client: Client) -> None:
    running = _ask(client, "sleep", 1.0)
    while not running.begun:
        time.sleep(0.01)
    before = client._process
    assert before is not None
    before.kill()
    assert _ended(running).result == "sleep"
    assert running.attempts == 2 and client._process is not before


def test_a_worker_about_the_same_file_is_the_one_that_knows_it(client: Client) -> None:
    jobs = [Job(kind="trial", arguments=(how, amount), near="trial") for how, amount in (("hold", 10.0), ("pid", 0.0))]
    held, pid = (_ended(client.ask(job)) for job in jobs)
    again = _ended(client.ask(Job(kind="trial", arguments=("pid", 1.0), near="trial")))
    assert held.result == "hold" and pid.result == again.result


def _near(how: str, amount: float) -> Job:
    return Job(kind="trial", arguments=(how, amount), near="trial")


def test_a_model_is_not_built_a_second_time_because_its_worker_was_busy_for_a_moment(client: Client) -> None:
    knows = _ended(client.ask(_near("hold", 12.0))).result and _ended(client.ask(_near("pid", 2.0))).result
    busy = client.ask(_near("sleep", 0.5))
    assert _ended(client.ask(_near("pid", 3.0))).result == knows and busy.ended.is_set()


def test_who_would_wait_long_for_the_worker_that_knows_the_file_goes_to_another(client: Client) -> None:
    knows = _ended(client.ask(_near("hold", 13.0))).result and _ended(client.ask(_near("pid", 4.0))).result
    busy = client.ask(_near("sleep", 30.0))
    assert _ended(client.ask(_near("pid", 5.0))).result != knows and not busy.ended.is_set()
    busy.stop()
    _ended(busy)


def test_a_table_of_small_maps_lets_the_map_of_another_visitor_go_first(client: Client) -> None:
    assert kind_named("grid").behind > kind_named("map").behind == 0.0
    busy = [_ask(client, "sleep", amount) for amount in (1.0, 1.01)]
    table = _ask(client, "sleep", 0.5, kind="later-trial")
    others = [_ask(client, "sleep", amount) for amount in (0.6, 0.61)]
    for running in (*busy, others[0]):
        while not running.begun:
            time.sleep(0.005)
    assert not table.begun
    assert [_ended(running).result for running in (*others, table)] == ["sleep"] * 3


def test_what_workers_keep_is_given_back_when_the_last_visitor_has_left(
    client: Client,
) -> None:
    client.say_visitors(1)
    assert _ended(_ask(client, "hold", 170e6)).result == "hold"
    state = client.state()
    assert state is not None and state["held_nbytes"] > 150e6
    client.say_visitors(0)
    until = time.monotonic() + 60
    while time.monotonic() < until and state is not None and state["held_nbytes"] > 100e6:
        time.sleep(0.5)
        state = client.state()
    assert state is not None and state["held_nbytes"] < 100e6


def _pid(client: Client, apart: str, amount: float) -> str:
    return str(_ended(client.ask(Job(kind="trial", arguments=("pid", amount), near="trial", apart=apart))).result)


def test_a_person_s_own_code_runs_in_a_worker_that_does_nothing_else(client: Client) -> None:
    both = [_ask(client, "sleep", amount) for amount in (2.0, 2.01)]
    own = _pid(client, "mine", 100.0)
    assert not any(one.ended.is_set() for one in both)  # It comes beside those of everybody.
    state = client.state()
    assert state is not None and state["workers"] == 3
    assert _pid(client, "mine", 101.0) == own
    assert own not in {_pid(client, "", amount) for amount in (102.0, 103.0)}
    # Other code never meets what this one left behind, and the first one's process is gone.
    other = _pid(client, "yours", 104.0)
    assert other != own and _are_gone([int(own)])
    assert [_ended(one).result for one in both] == ["sleep"] * 2


def test_other_code_waits_until_the_one_that_runs_has_ended(client: Client) -> None:
    first = client.ask(Job(kind="trial", arguments=("sleep", 1.1), apart="mine"))
    second = client.ask(Job(kind="trial", arguments=("ping", 1.2), apart="yours"))
    assert _ended(_ask(client, "ping", 1.3)).result == "ping" and not second.begun
    assert _ended(second).result == "ping" and first.ended.is_set()


_SERVER = """
import sys, time
from pathlib import Path
from inspector.jobs.client import Client
from inspector.jobs.job import Job
from inspector.jobs.settings import Settings

client = Client(Settings(workers=1, memory_nbytes=2 * 10**9, threads=1, results=Path(sys.argv[1])))
running = client.ask(Job(kind="trial", arguments=("loop", 15.0)))
while not running.begun:
    time.sleep(0.01)
print(client._process.pid, *client.state()["pids"], flush=True)
time.sleep(600)
"""


def test_a_server_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert server.stdout is not None
    with server:
        pids = [int(word) for word in server.stdout.readline().split()]
        server.kill()
    assert len(pids) == 2
    assert _are_gone(pids)


def _are_gone(pids: list[int]) -> bool:
    """In half a minute."""
    until = time.monotonic() + 30
    while time.monotonic() < until and any(_alive(pid) for pid in pids):
        time.sleep(0.1)
    return not any(_alive(pid) for pid in pids)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
