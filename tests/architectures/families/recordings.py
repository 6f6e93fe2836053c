"""The state dicts that `scripts/record_families.py` recorded."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "recorded"

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Recording:
    """One model. file: "bert"; source: "transformers-4.57.1"; tied: names that `save_pretrained` leaves out."""

    file: str
    source: str
    label: str
    class_name: str
    config: dict[str, Any]
    tied: tuple[str, ...]
    shapes: Shapes
    buffers: frozenset[str]

    @property
    def saved(self) -> Shapes:
        """What `save_pretrained` writes."""
        return {name: shape for name, shape in self.shapes.items() if name not in self.tied}

    @property
    def id(self) -> str:
        return f"{self.source}/{self.file}: {self.label}"


def recordings(file: str = "*") -> Iterator[Recording]:
    """The recordings of one family, or all, every source's."""
    for path in sorted(FOLDER.glob(f"*/{file}.txt.gz")):
        text = gzip.decompress(path.read_bytes()).decode()
        for part in text.removeprefix("# ").split("\n# "):
            head, *lines = part.rstrip("\n").split("\n")
            label, _, header = head.partition(" {")
            facts = json.loads("{" + header)
            rows = [line.split(" ") for line in lines]
            yield Recording(
                file=path.name.removesuffix(".txt.gz"),
                source=path.parent.name,
                label=label,
                class_name=facts.get("class", ""),
                config=facts["config"],
                tied=tuple(facts["tied"]),
                shapes={name: () if size == "-" else tuple(map(int, size.split("x"))) for name, size, *_ in rows},
                buffers=frozenset(name for name, _, *mark in rows if mark),
            )
