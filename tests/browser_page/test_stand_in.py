"""What stands for NumPy in the browser gives NumPy's results to the bit, and refuses everything else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import torch

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


def test_every_sample_is_diagnosed_with_it(tmp_path: Path) -> None:
    """Also one whose kernels have to be looked at to the end."""
    torch.save({f"net.{n}": v.abs() for n, v in tiny().state_dict().items()}, tmp_path / "one_sign.pth")
    torch.save(tiny().state_dict(), tmp_path / "goal.pth")
    samples = sorted(str(path) for path in (ROOT / "sample_models" / "files").iterdir() if path.suffix != ".png")
    program = (
        "import json, sys; from inspector.browser.session import Session\n"
        "def ask(session, **asked):\n"
        "    text = session.answer(json.dumps(asked))\n"
        "    assert 'needs NumPy' not in text, (asked, text[:2000])\n"
        "    return json.loads(text)\n"
        "*samples, one, goal = sys.argv[1:]\n"
        "done = 0\n"
        "for path in samples:\n"
        "    session = Session()\n"
        "    if ask(session, ask='open', path=path)['ok']:\n"
        "        ask(session, ask='repair', path=path)\n"
        "        done += 1\n"
        "session = Session()\n"
        "ask(session, ask='open', path=one)\n"
        "told = ask(session, ask='repair', path=one, other=goal)\n"
        "print(done, [each['id'] for each in told['value']['questions']])\n"
    )
    done, _, asked = _run(
        "-c", program, *samples, str(tmp_path / "one_sign.pth"), str(tmp_path / "goal.pth")
    ).partition(" ")
    assert int(done) > len(samples) // 2 and asked.strip() == "['one-sign']"


def tiny() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(9, 20), torch.nn.ReLU(), torch.nn.Linear(20, 7))
