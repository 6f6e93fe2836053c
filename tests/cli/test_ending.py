"""How commands end: signals, full disks, closed pipes. Real processes, since it is the process that ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from typer.core import TyperGroup

from inspector.cli.main import run
from inspector.cli.signals import Signalled

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and devices")
# How long a child is waited for; nothing here takes so long.
PATIENCE = 120


def start(folder: Path, *arguments: str, **more: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    (folder / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "inspector", *arguments],
        cwd=folder,
        env=environment,
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "preexec_fn": _heed_interrupts, **more},  # type: ignore[call-overload]
    )


def _heed_interrupts() -> None:
    """A run of the tests in the background, or under nohup, would pass on that Ctrl-C or the end is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.005)


def left(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.name != "tmp")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ending")
    (made / "tmp").mkdir()
    save_file({f"layer{n}": torch.zeros(1_000_000) for n in range(60)}, made / "large.safetensors")
    torch.save({"a": torch.ones(3)}, made / "a.pth")
    (made / "model.py").write_text(
        "import os, pathlib, time\ndef build():\n"
        "    pathlib.Path('child').write_text(str(os.getpid()))\n    time.sleep(300)\n"
    )
    return made


@pytest.fixture(autouse=True)
def as_it_was(folder: Path) -> Iterator[None]:
    before = left(folder)
    yield
    assert left(folder) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("shards", [(), ("--shard-size", "20MB")])
def test_a_signal_in_the_middle_of_writing_leaves_nothing(folder: Path, number: int, shards: tuple[str, ...]) -> None:
    process = start(folder, "convert", "large.safetensors", "--output", "new" if shards else "new.pth", *shards,
                    "--format", "pth")  # fmt: skip
    wait_until(lambda: any(p.name.startswith(".writing-") for p in folder.iterdir()), process)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (128 + number, "", "Stopped.\n")


def test_a_second_signal_does_not_cut_the_cleaning_short(folder: Path) -> None:
    process = start(folder, "convert", "large.safetensors", "--output", "new.pth")
    wait_until(lambda: any(p.name.startswith(".writing-") for p in folder.iterdir()), process)
    # As `timeout` does: to the process and to its group.
    for _ in range(3):
        process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 143


def test_what_a_person_own_code_started_ends_too(folder: Path) -> None:
    process = start(folder, "diagnose", "a.pth", "--target", "code:model.py:build")
    child = folder / "child"
    wait_until(lambda: child.exists() and bool(child.read_text()), process)
    process.terminate()
    assert process.wait(PATIENCE) == 143
    status = Path("/proc") / child.read_text() / "stat"
    child.unlink()
    assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] in "ZX"


def test_a_scan_ends_with_its_processes(folder: Path, tmp_path: Path) -> None:
    for n in range(12):
        # A digest of so many zeros takes minutes.
        with (tmp_path / f"{n}.safetensors").open("wb") as file:
            file.write((2).to_bytes(8, "little") + b"{}")
            file.truncate(1 << 40)
    process = start(folder, "scan", str(tmp_path), "--digest", "--jobs", "2")

    def children() -> list[str]:
        return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()

    wait_until(lambda: len(children()) >= 3, process)  # two that read, and the one that counts their things
    time.sleep(1)
    ours = children()
    process.terminate()
    assert process.wait(PATIENCE) == 143
    end = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in ours) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [pid for pid in ours if Path(f"/proc/{pid}").exists()]


def test_what_ignores_hangups_goes_on(folder: Path) -> None:
    process = start(folder, "open", "a.pth", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


COMMANDS = [
    ("open", "a.pth"),
    ("open", "a.pth", "--json"),
    ("stats", "a.pth"),
    ("explain", "--list-methods"),
    ("explain-error", "--text", "Unexpected key(s) in state_dict: a"),
    ("scan", "tmp", "--json"),
    ("check", "a.pth"),
    ("check", "a.pth", "--format", "sarif"),
    ("--help",),
    ("open", "--help"),
]


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_full_standard_output_is_a_sentence(folder: Path, arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        process = start(folder, *arguments, stdout=full)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert err == "Standard output cannot be written: No space left on device.\n"


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_reader_that_has_left_ends_it_without_a_word(folder: Path, arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start(folder, *arguments, stdout=writing)
    os.close(writing)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (141, "")


def test_a_closed_standard_output_is_said_before_anything_is_done(folder: Path) -> None:
    line = f'exec {sys.executable} -m inspector convert large.safetensors --output new.pth "$@" >&-'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "Standard output is closed: there is nowhere to put the answer.\n"


def test_errors_need_no_standard_error(folder: Path) -> None:
    for redirection in ("2>&-", "2>/dev/full"):
        line = f"exec {sys.executable} -m inspector open none.pth {redirection}"
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (2, b"")


def test_names_are_written_also_where_the_terminal_has_no_letters_for_them(folder: Path, tmp_path: Path) -> None:
    torch.save({"größe.→": torch.ones(3)}, tmp_path / "größe.pth")
    for asked in ((), ("--json",)):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
        command = [sys.executable, "-m", "inspector", "open", str(tmp_path / "größe.pth"), "--tensors", *asked]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert ("größe.→".encode() if asked else rb"gr\xf6\xdfe.\u2192") in done.stdout


@pytest.mark.parametrize("at", ["make_context", "invoke"])
def test_a_signal_before_the_command_begins_has_its_own_code(
    at: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def signalled(*_: object, **__: object) -> None:
        raise Signalled(signal.SIGTERM)

    monkeypatch.setattr(TyperGroup, at, signalled)
    assert run(["open", "a.pth"]) == 143
    assert capsys.readouterr().err == "Stopped.\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_the_commands_are_loaded_is_a_word(folder: Path, number: signal.Signals) -> None:
    (folder / "late" / "typer").mkdir(parents=True)
    (folder / "late" / "typer" / "__init__.py").write_text(f"import signal; signal.raise_signal({int(number)})\n")
    code = f"import sys; sys.path[:0] = [{str(folder / 'late')!r}]; from inspector.__main__ import main; main()"
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        preexec_fn=_heed_interrupts,
        timeout=PATIENCE,
        check=False,
    )
    shutil.rmtree(folder / "late")
    assert process.stderr == "Stopped.\n" and process.returncode in (128 + number, -signal.SIGINT)
