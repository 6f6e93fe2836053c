"""What a wheel installs: the app is in it, nothing lies beside the package, and the app runs from elsewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_PATIENCE = 120
# Heavy packages, and what a plain installation does not have.
_BLOCKED = ("torch", "torchvision", "safetensors", "streamlit", "pandas", "plotly", "PIL", "cv2", "thop")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of what is committed or would be, so that nothing is written here."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, target = ROOT / name, folder / "source" / name
        if source.is_file() and name.split("/")[0] not in ("tests", "benchmarks", "docs"):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    (folder / "source" / "docs").mkdir()
    command = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run([sys.executable, *command], cwd=folder / "source", check=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(wheel)]
    subprocess.run([sys.executable, *command], check=True)
    return folder


def test_nothing_but_the_package_is_at_the_top_and_the_app_is_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    version = wheel.name.split("-")[1]
    assert {name.partition("/")[0] for name in names} == {"inspector", f"model_inspector-{version}.dist-info"}
    pages = {f"inspector/app_files/pages/{path.name}" for path in (ROOT / "pages").glob("*.py")}
    files = {"app.py", "ui.py", ".streamlit/config.toml", "sample_models/manifest.json", "sample_models/build.py"}
    assert pages | {f"inspector/app_files/{name}" for name in files} <= names
    assert not [name for name in names if name.startswith("inspector/app_files/tests")]
    package = {str(path.relative_to(ROOT)) for path in (ROOT / "inspector").rglob("*.py")}
    assert package <= names
    static = {str(path.relative_to(ROOT)) for path in (ROOT / "inspector/web/static").rglob("*") if path.is_file()}
    assert static <= names and len([name for name in static if "vendor" in name]) == 3


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(installed: Path, folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(installed), "INSPECTOR_SAMPLES": str(folder / "samples")}


@pytest.fixture
def address(installed: Path, tmp_path: Path) -> Iterator[str]:
    port = _free_port()
    command = [sys.executable, "-m", "inspector", "app", "--no-browser", "--port", str(port)]
    server = subprocess.Popen(command, cwd=tmp_path, env=_environment(installed, tmp_path), stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


def test_the_installed_app_runs_from_another_folder(address: str, installed: Path, tmp_path: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=5) as answer:
                assert answer.read() == b"ok"
            break
        except OSError:
            assert time.monotonic() < end, "the server did not start"
            time.sleep(0.2)
    # The route that takes uploads is of app.py, which a bare `streamlit run ui.py` would not have.
    with urllib.request.urlopen(f"{address}/", timeout=5) as answer:
        assert b"<html" in answer.read()
    assert (tmp_path / "samples" / "files" / "shapes.pth").is_file()
    code = (
        "from streamlit.testing.v1 import AppTest; import inspector, os;"
        "from inspector.installed import app_folder; os.chdir(app_folder());"
        "app = AppTest.from_file(str(app_folder() / 'ui.py'), default_timeout=120).run();"
        "assert not app.exception, app.exception; print(inspector.__file__, inspector.__version__)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=_environment(installed, tmp_path),
        capture_output=True,
        text=True,
    )
    assert out.returncode == 0, out.stderr[-2000:]
    assert out.stdout.startswith(str(installed)), out.stdout


def _plain(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command where nothing is installed but what a plain installation brings."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({_BLOCKED})); "
        "from inspector.cli.main import run; sys.exit(run(sys.argv[1:]))"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder, env=_environment(installed, folder), capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("command", [["open"], ["identify"], ["diagnose"], ["stats"], ["scan"], ["check"]])
def test_a_plain_installation_reads(installed: Path, tmp_path: Path, command: list[str]) -> None:
    shutil.copy(ROOT / "sample_models" / "files" / "shapes_dp.pth.tar", tmp_path / "net.pth")
    done = _plain(installed, tmp_path, *command, "." if command == ["scan"] else "net.pth")
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_plain_installation_repairs_and_converts(installed: Path, tmp_path: Path) -> None:
    """The file is the one that is written with torch, and nothing is said to be proven that was not tried."""
    shutil.copy(ROOT / "sample_models" / "files" / "shapes_dp.pth.tar", tmp_path / "net.pth")
    done = _plain(installed, tmp_path, "repair", "net.pth", "-o", "out.pth", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["export"]
    proofs = {proof["id"]: (proof["passed"], proof["says"]) for proof in report["verification"]["proofs"]}
    assert proofs["strict-load"] == (None, "The strict load was not tried: torch is not installed.")
    assert proofs["forward"][0] is None and proofs["library"][0] is None
    assert all(proofs[name][0] for name in ("bijection", "names", "bytes", "values", "reread"))
    whole = subprocess.run(
        [sys.executable, "-m", "inspector", "repair", "net.pth", "-o", "with_torch.pth"],
        cwd=tmp_path, env=_environment(installed, tmp_path), capture_output=True, text=True,
    )  # fmt: skip
    assert whole.returncode == 0 and "load_state_dict(strict=True) accepts" in whole.stdout
    assert (tmp_path / "out.pth").read_bytes() == (tmp_path / "with_torch.pth").read_bytes()
    text = _plain(installed, tmp_path, "convert", "out.pth", "-o", "out.safetensors", "--dtype", "bfloat16")
    assert text.returncode == 0 and "was not tried: safetensors is not installed." in text.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["merge", "net.pth", "net.pth", "-o", "out.pth"],
        ["repair", "net.pth", "-o", "out.pth", "--reference", "net.pth"],
        ["repair", "net.pth", "-o", "out.pth", "--with-optimizer"],
        ["diagnose", "net.pth", "--target", "code:collections:OrderedDict"],
        ["explain", "net.pth", "p.png"],
        ["flops", "net.pth"],
        ["app"],
    ],
)
def test_what_needs_more_says_which_command_installs_it(installed: Path, tmp_path: Path, command: list[str]) -> None:
    shutil.copy(ROOT / "sample_models" / "files" / "shapes_dp.pth.tar", tmp_path / "net.pth")
    done = _plain(installed, tmp_path, *command)
    assert done.returncode == 2
    assert re.search(r"Run: pip install (torch|streamlit) ", done.stderr) and "Traceback" not in done.stderr
    # Another project has our name on PyPI.
    assert "model-inspector" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.pth"]
