"""How the suite is run: three lengths, side by side, and what the last lines say.

    make quick      without what is listed in slow.txt, in about a minute
    make test       everything; property loops at a part of their length
    make thorough   property loops in full

A file's tests share one worker, and so do all browser tests: two servers and two browsers would wait for each other on
two cores. The groups that took longest when slow.txt was written begin first.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest

from inspector.architectures import user_code
from tests.warm_python import WarmPython, as_subprocess

HERE = Path(__file__).parent
# Functions that take more than a third of a second over all their cases: scripts/test_times.py writes it.
SLOW = HERE / "slow.txt"
# When the loops last ran in full, and how they ended: `make thorough` writes it.
LAST = HERE / "thorough.txt"

# Before torch is imported, here and in every process that a test starts: side by side they would fight over the cores.
os.environ["OMP_NUM_THREADS"] = "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("how long")
    group.addoption("--quick", action="store_true", help="leave out what tests/slow.txt lists, and the browser")
    group.addoption("--thorough", action="store_true", help="run property loops in full")


def pytest_configure(config: pytest.Config) -> None:
    from hypothesis import settings

    # The same examples in each run: what a change broke is told from what was always so. `make thorough` looks further.
    settings.register_profile("suite", max_examples=100, deadline=None, derandomize=True)
    settings.register_profile("thorough", max_examples=1000, deadline=None, print_blob=True)
    settings.load_profile("thorough" if config.getoption("--thorough") else "suite")


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether this run has time."""
    return bool(request.config.getoption("--thorough"))


@pytest.fixture(scope="session")
def seeds(thorough: bool) -> Callable[..., range]:
    """seeds(300, full=4000): the seeds of a property loop, as many as this run has time for."""

    def choose(few: int, *, full: int) -> range:
        return range(full if thorough else few)

    return choose


@pytest.fixture(scope="session")
def _warm_python() -> Iterator[WarmPython]:
    warm = WarmPython()
    yield warm
    warm.close()


@pytest.fixture
def warm_python(_warm_python: WarmPython, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's own code runs in a fork of a Python that has torch, not in one that imports it anew."""
    if sys.platform == "linux":
        monkeypatch.setattr(user_code, "subprocess", as_subprocess(_warm_python))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Stable: everything else keeps its order. First, since xdist writes the groups that it finds into the names."""
    browser = {id(item) for item in items if item.get_closest_marker("browser") is not None}
    seconds = _listed()
    if config.getoption("--quick"):
        left_out = [item for item in items if id(item) in browser or _function(item) in seconds]
        config.hook.pytest_deselected(items=left_out)
        gone = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in gone]
    groups = {id(item): "browser" if id(item) in browser else _group(item) for item in items}
    for item in items:
        item.add_marker(pytest.mark.xdist_group(groups[id(item)]))
    if hasattr(config, "workerinput"):
        # What takes longest first, so that at the end no worker waits long for another.
        taken: defaultdict[str, float] = defaultdict(float)
        for function, group in dict.fromkeys((_function(item), groups[id(item)]) for item in items):
            taken[group] += seconds.get(function, 0.0)
        items.sort(key=lambda item: -taken[groups[id(item)]])
    else:
        items.sort(key=lambda item: id(item) in browser)


def pytest_collection_finish(session: pytest.Session) -> None:
    _set_aside()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    if nextitem is None or nextitem.path != item.path:
        _set_aside()


def pytest_unconfigure(config: pytest.Config) -> None:
    # At the end everything is to be found again: extensions complain of what they think was forgotten.
    gc.unfreeze()


def _set_aside() -> None:
    """What is in memory between two files stays for good: tests, torch's modules, the index. Three million objects that
    are searched for garbage again and again are a fifteenth of the time of all tests."""
    gc.collect()
    gc.freeze()


def _function(item: pytest.Item) -> str:
    """A test as it is listed: all its cases are one."""
    return item.nodeid.split("[")[0]


def _group(item: pytest.Item) -> str:
    """A file's tests, or those of several files that share what is costly."""
    named = item.get_closest_marker("xdist_group")
    return str(named.args[0]) if named is not None else item.nodeid.split("::")[0]


def _listed() -> dict[str, float]:
    """Seconds of each slow function."""
    lines = SLOW.read_text(encoding="utf-8").splitlines() if SLOW.exists() else []
    return {line.split()[-1]: float(line.split()[0]) for line in lines if line.strip()}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    without = [report for report in skipped if "for the browser tests" in str(report.longrepr)]
    if without:
        terminalreporter.write_line(
            f"{len(without)} browser tests (tests/e2e) did not run: no Chromium or Chrome was found. "
            "`python -m playwright install chromium` fetches one.",
            yellow=True,
        )
    if config.getoption("--thorough"):
        seed = config.getoption("--hypothesis-seed")
        line = f"on {date.today()} with Hypothesis's seed {seed}: {_outcome(terminalreporter)}"
        LAST.write_text(line + "\n", encoding="utf-8")
        terminalreporter.write_line(f"Property loops ran in full {line}.")
    elif LAST.exists() and not config.getoption("--quick"):
        terminalreporter.write_line(f"Property loops last ran in full {LAST.read_text(encoding='utf-8').strip()}.")


def _outcome(reporter: pytest.TerminalReporter) -> str:
    return ", ".join(
        f"{len(reporter.stats[kind])} {kind}" for kind in ("passed", "failed", "error") if kind in reporter.stats
    )
