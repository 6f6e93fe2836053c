"""The shipped index: names and shapes of every torchvision architecture, without importing torch.

Written by `scripts/build_index.py`. One entry per builder and variant (auxiliary heads, frozen norms, quantised); an
entry says which tensors follow the class count, the input channels and the picture size, and how.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any

from inspector.architectures.types import ArchitectureSpec, TargetTensor

Shape = tuple[int, ...]

# Counters and profilers' leftovers: they come and go without changing what a network computes in eval mode.
BOOKKEEPING = frozenset({"num_batches_tracked", "total_ops", "total_params", "n_averaged"})


def is_bookkeeping(name: str) -> bool:
    """Whether a tensor of this name says nothing about the architecture: "bn1.num_batches_tracked"."""
    return name.rpartition(".")[2] in BOOKKEEPING


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One builder in one variant, at its default class count, three input channels and default picture size.

    task: "classification", "detection", "segmentation", "video", "quantization", "optical_flow".
    tensors: in the order of the model's own state dict.
    num_classes: the default, None where the builder takes none. image_size: the default, None where no tensor
    follows it.
    heads: (position in tensors, dimension, factor, offset): size = factor x classes + offset.
    first: positions of the weights whose dimension 1 is the number of input channels.
    positions: (position, dimension, patch, extra): size = (image_size // patch)^2 + extra.
    """

    name: str
    task: str
    options: tuple[tuple[str, bool | int | float], ...]
    tensors: tuple[TargetTensor, ...]
    num_classes: int | None
    image_size: int | None
    heads: tuple[tuple[int, int, int, int], ...]
    first: tuple[int, ...]
    positions: tuple[tuple[int, int, int, int], ...]

    def at(self, *, num_classes: int | None, in_channels: int | None, image_size: int | None) -> tuple[Shape, ...]:
        """The shapes under these settings, None for the default; parallel to `tensors`."""
        shapes = [list(t.shape or ()) for t in self.tensors]
        if num_classes is not None:
            for i, dim, factor, offset in self.heads:
                shapes[i][dim] = factor * num_classes + offset
        if in_channels is not None:
            for i in self.first:
                shapes[i][1] = in_channels
        if image_size is not None:
            for i, dim, patch, extra in self.positions:
                shapes[i][dim] = (image_size // patch) ** 2 + extra
        return tuple(tuple(shape) for shape in shapes)


@dataclass(frozen=True)
class Index:
    """All entries. version: the torchvision they were built with."""

    version: str
    entries: tuple[Entry, ...]

    @cached_property
    def postings(self) -> dict[tuple[str, Shape], tuple[int, ...]]:
        """(name, shape) -> numbers of the entries that hold it; bookkeeping left out."""
        found: dict[tuple[str, Shape], list[int]] = {}
        for number, entry in enumerate(self.entries):
            for tensor in entry.tensors:
                if not is_bookkeeping(tensor.name):
                    found.setdefault((tensor.name, tensor.shape or ()), []).append(number)
        return {key: tuple(numbers) for key, numbers in found.items()}

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of tensors per entry, bookkeeping left out."""
        return tuple(sum(not is_bookkeeping(tensor.name) for tensor in entry.tensors) for entry in self.entries)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every tensor name of every entry."""
        return frozenset(tensor.name for entry in self.entries for tensor in entry.tensors)

    @cached_property
    def segments(self) -> frozenset[str]:
        """Every segment of every name: what is not here is never part of a torchvision name."""
        return frozenset(segment for name in self.names for segment in name.split("."))

    @cached_property
    def builders(self) -> tuple[str, ...]:
        """Names of the builders, in torchvision's order."""
        return tuple(dict.fromkeys(entry.name for entry in self.entries))

    def find(self, name: str, options: Iterable[tuple[str, bool | int | float]] = ()) -> Entry | None:
        """The entry of a builder in the variant that these options select; other options do not matter.

        Falls back to the builder's plain entry; None for an unknown builder.
        """
        wanted = set(options)
        fitting = [e for e in self.entries if e.name == name and wanted.issuperset(e.options)]
        return max(fitting, key=lambda e: len(e.options), default=None)

    def of(self, spec: ArchitectureSpec) -> Entry | None:
        """The entry of a spec, None when the index has no such builder."""
        return self.find(spec.name, spec.options) if spec.library == "torchvision" else None


@lru_cache(maxsize=1)
def load_index() -> Index:
    """The shipped index, read once per process (about 0.1 s)."""
    data = read_data("torchvision-index.json.gz")
    keys: list[str] = data["keys"]
    shapes = [tuple(shape) for shape in data["shapes"]]
    tensors = [
        TargetTensor(name=keys[key], shape=shapes[shape], dtype=dtype, is_buffer=bool(is_buffer))
        for key, shape, dtype, is_buffer in data["tensors"]
    ]
    layouts = [tuple(tensors[number] for number in layout) for layout in data["layouts"]]
    return Index(
        version=data["torchvision"],
        entries=tuple(
            Entry(
                name=entry["name"],
                task=entry["task"],
                options=tuple(sorted(entry["options"].items())),
                tensors=layouts[entry["layout"]],
                num_classes=entry.get("num_classes"),
                image_size=entry.get("image_size"),
                heads=tuple(tuple(head) for head in entry.get("heads", ())),
                first=tuple(entry["first"]),
                positions=tuple(tuple(position) for position in entry.get("positions", ())),
            )
            for entry in data["entries"]
        ),
    )


def read_data(name: str) -> dict[str, Any]:
    """One of the shipped data files, decoded."""
    packed = (files("inspector.architectures") / "data" / name).read_bytes()
    content: dict[str, Any] = json.loads(gzip.decompress(packed))
    return content
