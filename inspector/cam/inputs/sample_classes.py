"""What the classes of this project's own sample files are called: their manifest says it for all of them."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from inspector.checkpoint.types import Checkpoint
from inspector.installed import sample_sources, samples_folder


def sample_classes(checkpoint: Checkpoint) -> tuple[str, ...]:
    """The names where the file is one of the samples, byte for byte; () for every other file."""
    sha256 = checkpoint.origin.sha256
    names, files = _manifest()
    name = Path(checkpoint.origin.name).name
    if not sha256 or name not in files:
        return ()
    return names if _sha256(samples_folder() / "files" / name) == sha256 else ()


@lru_cache(maxsize=1)
def _manifest() -> tuple[tuple[str, ...], frozenset[str]]:
    """(the names, the files)."""
    sources = sample_sources()
    try:
        found = {} if sources is None else json.loads((sources / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    return tuple(map(str, found.get("classes", ()))), frozenset(str(one["file"]) for one in found.get("files", ()))


@lru_cache(maxsize=32)
def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
