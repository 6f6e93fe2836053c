"""The source text of module classes, which torch.save put into files up to version 1.5: shown, never run.

Source: torch/serialization.py of 1.1, persistent_id: ("module", class, source file, source text). torch.load compares
it with the installed class and can write the difference into the working directory (`dump_patches`).
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.checkpoint.types import SourceText
from inspector.readers.plain_json import whole
from inspector.units import counted

_TEXT_NBYTES = 4_000_000
_MOST_TEXTS = 5_000


def source_texts(sources: Sequence[tuple[str, str]]) -> tuple[tuple[SourceText, ...], list[str]]:
    """(the texts by class, each once; what was left out). sources: (full class name, text) in file order."""
    shown: list[SourceText] = []
    left = _TEXT_NBYTES
    out = 0
    for name, text in dict.fromkeys(sources):
        if left <= 0 or len(shown) >= _MOST_TEXTS:
            out += 1
            continue
        nbytes = len(text.encode("utf-8", "replace"))
        shown.append(SourceText(name=name[:300], text=whole(text[:left]), nbytes=nbytes))
        left -= len(text)
        out += left < 0
    said = [f"The source text of {counted(out, 'module class', 'module classes')} was not read whole."] if out else []
    return tuple(shown), said
