"""What stands for NumPy in the browser gives NumPy's results to the bit, and refuses everything else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.browser_page.stand_in_cases import cases

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = ROOT / "site" / "python"


def _run(program: str, *arguments: str) -> str:
    path = os.pathsep.join((str(STAND_IN), str(ROOT)))
    done = subprocess.run(
        [sys.executable, program, *arguments],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_its_results_are_numpys() -> None:
    theirs, ours = cases(), json.loads(_run(str(ROOT / "tests" / "browser_page" / "stand_in_cases.py")))
    assert ours.keys() == theirs.keys()
    assert {name for name in theirs if ours[name] != theirs[name]} == set()


def test_what_it_has_not_is_refused_in_words() -> None:
    program = (
        "import numpy as np; from inspector.errors import MissingLibrary\n"
        "one = np.arange(4)\n"
        "asks = [lambda: np.linalg, lambda: one / 2, lambda: one.mean(), lambda: one[np.arange(2)],\n"
        "        lambda: np.arange(4, dtype='float32').sum(), lambda: np.concatenate([one, one.astype('uint8')])]\n"
        "for ask in asks:\n"
        "    try: print('done', ask())\n"
        "    except MissingLibrary as error: print(str(error)[:22])\n"
    )
    assert _run("-c", program).splitlines() == ["This needs NumPy (nump"] * 1 + ["This needs NumPy (ndar"] * 2 + [
        "This needs NumPy (inde",
        "This needs NumPy (sums",
        "This needs NumPy (join",
    ]
