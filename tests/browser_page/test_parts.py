"""What goes into the page: all that its face imports, and nothing that it has no use for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "site"))

from site_parts import NOT_HERE, _imported, closure  # noqa: E402

# Beside the standard library and ours: the stand-in, and PyYAML, which goes along.
HERE = {"numpy", "yaml"}


def test_nothing_that_is_imported_at_once_is_missing() -> None:
    parts = closure(ROOT)
    held = {
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__") for path in parts
    }
    assert {"inspector.browser.session", "inspector.readers.formats.torch_legacy", "inspector.cam.report"} <= held
    assert not {"inspector.web.uploads", "inspector.cli.main", "inspector.jobs.broker"} & held
    missing, foreign = set(), set()
    for path in parts:
        for name, needed in _imported(path) if path != ROOT / "inspector" / "__init__.py" else ():
            first = name.partition(".")[0]
            if first == "inspector":
                file = ROOT / Path(*name.split("."))
                exists = file.with_suffix(".py").is_file() or (file / "__init__.py").is_file()
                missing |= {name} if needed and exists and name not in held else set()
            elif needed and first not in sys.stdlib_module_names | HERE:
                foreign.add(f"{path.relative_to(ROOT)}: {first}")
    assert missing == set()
    # Only what nobody asks for without torch or numba may name them at once.
    assert {line for line in foreign if not line.endswith((": torch", ": torchvision", ": numba"))} == set()


def test_the_server_of_the_site_says_how_it_is_used() -> None:
    script = str(ROOT / "site" / "serve.py")
    done = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "port" in done.stdout
    done = subprocess.run([sys.executable, script, "here"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_what_is_left_out_is_there() -> None:
    """A room that was renamed would come back in unnoticed."""
    for name in NOT_HERE:
        place = ROOT / Path(*name.split("."))
        assert place.is_dir() or place.with_suffix(".py").is_file(), name
