"""The terminal sessions of the README: commands that are run on the sample files, and what they print.

`<!-- session: open shapes_dp.pth.tar | head -12 -->` is followed by what that command prints; scripts/build_docs.py
renews it, and a test holds it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import tempfile
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[1] / "sample_models" / "files"
SHOWN = ("shapes_dp.pth.tar", "hostile.pth", "truncated.pth", "download_page.pth", "shapes.safetensors")
_WIDTH = "104"
_SESSION = re.compile(
    r"<!-- session: (?P<command>[^\n|]*?)(?P<part> \| (?P<end>head|tail) -(?P<most>\d+))? -->\n"
    r"(?:\n```text\n.*?\n```\n)?",
    re.DOTALL,
)


def with_sessions(text: str) -> str:
    """The page with every session as it is now. Raises RuntimeError where the sample files are missing."""
    if not _SESSION.search(text):
        return text
    if not (SAMPLES / SHOWN[0]).is_file():
        raise RuntimeError("The sample files are missing: python sample_models/build.py derive")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in SHOWN:
            shutil.copy(SAMPLES / name, name)
        return _SESSION.sub(_renewed, text)


def _renewed(match: re.Match[str]) -> str:
    command, part = match["command"], match["part"] or ""
    lines = [line.rstrip() for line in printed(command).rstrip().splitlines()]
    if match["most"]:
        most = int(match["most"])
        lines = lines[:most] if match["end"] == "head" else lines[-most:]
    shown = "\n".join([f"$ inspector {command}{part}", *lines])
    return f"<!-- session: {command}{part} -->\n\n```text\n{shown}\n```\n"


def printed(command: str) -> str:
    """What a command prints on standard output, in this folder."""
    from inspector.cli.main import run

    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _WIDTH
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            run(shlex.split(command))
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)
    return out.getvalue()
