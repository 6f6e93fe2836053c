"""Files to be written by the page and by the command line, and what became of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.main import get_command

from inspector.cli import main

# Made once: to make it out of every command's signature takes three times as long as to write a small file.
_COMMAND = get_command(main.app)
# What takes NumPy or torch is refused by the page, in words, and written by the command line.
_ELSEWHERE = "needs NumPy"


@dataclass(frozen=True)
class Wanted:
    """One file to write: kind, writer and what was chosen for it. options: the command line's words for that."""

    path: Path
    kind: str
    writer: str
    more: dict[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    def asked(self, at: str, folder: str = "") -> dict[str, Any]:
        return {"ask": "write", "path": at, "kind": self.kind, "writer": self.writer, "folder": folder, **self.more}


def by_command_line(one: Wanted, folder: Path) -> str:
    """The sha256 of what it writes, "" where it refuses. In this process."""
    target = folder / "written"
    options = ("--format", one.writer, "--overwrite", *one.options)
    with patch.object(main, "app", _COMMAND):
        main.run([one.kind, str(one.path), "--output", str(target), *options])
    try:
        return hashlib.sha256(target.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""
    finally:
        target.unlink(missing_ok=True)


def sha256_in(folder: Path) -> str:
    """Of the one file in it, "" where there is none or more."""
    files = [path.read_bytes() for path in folder.iterdir()]
    return hashlib.sha256(files[0]).hexdigest() if len(files) == 1 else ""


class Count:
    """What became of each file that was to be written."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.other: list[tuple[Wanted, str, Any]] = []

    def add(self, one: Wanted, natively: str, answer: dict[str, Any], written: str) -> None:
        """natively, written: sha256 of what the command line and the page wrote."""
        shown = answer["value"]["sha256"] if answer["ok"] else ""
        if answer["ok"] and natively == shown == written and shown in answer["value"]["html"]:
            self.counts[f"{one.kind}: equal"] += 1
        elif not answer["ok"] and not natively:
            self.counts[f"{one.kind}: refused alike"] += 1
        elif not answer["ok"] and _ELSEWHERE in answer["says"]:
            self.counts[f"{one.kind}: in the app alone"] += 1
        else:
            self.other.append((one, natively, answer))

    def __str__(self) -> str:
        return f"{self.counts.total()} files to be written, {dict(self.counts)}, {len(self.other)} differ"
