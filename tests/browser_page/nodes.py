"""Questions put to the page's Python in Node (page.mjs)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).with_name("page.mjs")


def ask_in_node(
    dist: Path, work: Path, questions: Sequence[dict[str, Any]], written: Path | None = None
) -> list[dict[str, Any]]:
    """work is /work there, and written, where there is one, /written."""
    folders = [str(folder) for folder in (dist, work, written) if folder is not None]
    done = subprocess.run(
        ["node", str(_PAGE), *folders],
        input="\n".join(map(json.dumps, questions)), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()[-len(questions) :]]
