"""The shipped index: names and shapes of every torchvision and timm architecture, without importing either or torch.

Written by `scripts/build_index.py`; `store` says how it is packed. One entry per builder and variant (auxiliary heads,
frozen norms, quantised, a head where the default has none); an entry says which tensors follow the class count, the
input channels and the picture size, and how. Names and shapes become objects only when an entry is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from inspector.architectures.store import Packed, read_data, unpack
from inspector.architectures.types import ArchitectureSpec, OptionValue, TargetTensor
from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import Shape

__all__ = ["Entry", "Index", "load_index", "read_data"]

Law = tuple[int, int, int, int]
SizeLaw = tuple[int, int, int, int, int]

INDEX_FILE = "architectures.index.gz"
LIBRARIES = ("torchvision", "timm")  # the first is meant where the same name is in both

# How a dimension follows n = picture size // patch; every one plus an offset. Relative positions run from 1-n to n-1.
SQUARE, TABLE, LINE, SIDE = range(4)


def sized(kind: int, patches: int) -> int:
    """The size of a dimension of this kind for that many patches along one side."""
    return {SQUARE: patches**2, TABLE: (2 * patches - 1) ** 2, LINE: 2 * patches - 1, SIDE: patches}[kind]


class Layout:
    """The tensors of one or several entries, at the builder's defaults, in the order of its state dict.

    number: its place among the index's layouts. Everything else is looked up when it is first asked for.
    """

    def __init__(self, number: int, packed: Packed) -> None:
        self.number = number
        self._packed = packed

    @cached_property
    def names(self) -> tuple[str, ...]:
        keys, count = self._packed.keys, len(self._packed.shapes)
        return tuple([keys[self._packed.tokens[t] // count] for t in self._packed.layout(self.number)])

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        shapes, count = self._packed.shapes, len(self._packed.shapes)
        return tuple([shapes[self._packed.tokens[t] % count] for t in self._packed.layout(self.number)])

    @cached_property
    def tensors(self) -> tuple[TargetTensor, ...]:
        kinds = [self._packed.kinds[k] for k in map(self._packed.kind_of.__getitem__, self._packed.layout(self.number))]
        return tuple(
            TargetTensor(name=name, shape=shape, dtype=dtype, is_buffer=is_buffer)
            for name, shape, (dtype, is_buffer) in zip(self.names, self.shapes, kinds, strict=True)
        )

    @cached_property
    def weighty(self) -> frozenset[str]:
        """The names that are not bookkeeping."""
        return frozenset(name for name in self.names if not is_bookkeeping(name))

    @cached_property
    def counters(self) -> frozenset[str]:
        """The names that are bookkeeping."""
        return frozenset(self.names) - self.weighty


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """One builder in one variant, at its default class count, three input channels and default picture size.

    library: "torchvision" or "timm". task: "classification", "detection", "segmentation", "video", "quantization",
    "optical_flow". kin: entries of the same number have the same tensors but for those that follow a setting.
    num_classes: the default, None where the builder takes none. needs_classes: the variant with a head of a builder
    whose default has none; its spec always says how many. image_size: the default, None where no tensor follows it.
    heads, channels: (position in tensors, dimension, factor, offset): size = factor x setting + offset.
    positions: (position, dimension, patch, offset, kind): size = `sized(kind, image_size // patch)` + offset.
    facts: what timm's default_cfg publishes (input size, mean, crop); empty for torchvision, see `official`.
    """

    library: str
    name: str
    task: str
    options: tuple[tuple[str, OptionValue], ...]
    layout: Layout
    kin: int
    num_classes: int | None
    needs_classes: bool
    image_size: int | None
    heads: tuple[Law, ...]
    channels: tuple[Law, ...]
    positions: tuple[SizeLaw, ...]
    facts: Mapping[str, Any]

    @property
    def label(self) -> str:
        """ "timm/resnet18"."""
        return f"{self.library}/{self.name}"

    @property
    def tensors(self) -> tuple[TargetTensor, ...]:
        """In the order of the model's own state dict."""
        return self.layout.tensors

    @property
    def first(self) -> tuple[int, ...]:
        """Positions of the weights whose dimension 1 is the number of input channels."""
        return tuple(i for i, dim, factor, offset in self.channels if (dim, factor, offset) == (1, 1, 0))

    @cached_property
    def laws(self) -> tuple[object, ...]:
        """Entries of one layout with equal laws fit a file equally well."""
        return self.num_classes, self.needs_classes, self.image_size, self.heads, self.channels, self.positions

    @cached_property
    def following(self) -> tuple[int, ...]:
        """Positions of the tensors that follow some setting."""
        return tuple(sorted({i for i, *_ in (*self.heads, *self.channels, *self.positions)}))

    def changed(self, *, num_classes: int | None, in_channels: int | None, image_size: int | None) -> dict[int, Shape]:
        """position -> shape under these settings (None for the default), of the tensors that follow one of them."""
        found: dict[int, list[int]] = {}

        def put(i: int, dim: int, size: int) -> None:
            found.setdefault(i, list(self.layout.shapes[i]))[dim] = size

        if num_classes is not None:
            for i, dim, factor, offset in self.heads:
                put(i, dim, factor * num_classes + offset)
        if in_channels is not None:
            for i, dim, factor, offset in self.channels:
                put(i, dim, factor * in_channels + offset)
        if image_size is not None:
            for i, dim, patch, offset, kind in self.positions:
                put(i, dim, sized(kind, image_size // patch) + offset)
        return {i: tuple(shape) for i, shape in found.items()}

    def at(self, *, num_classes: int | None, in_channels: int | None, image_size: int | None) -> tuple[Shape, ...]:
        """The shapes under these settings, None for the default; parallel to `tensors`."""
        changed = self.changed(num_classes=num_classes, in_channels=in_channels, image_size=image_size)
        if not changed:
            return self.layout.shapes
        return tuple([changed.get(i, shape) for i, shape in enumerate(self.layout.shapes)])


class Index:
    """All entries. versions: library -> the release they were built with."""

    def __init__(self, packed: Packed, rows: Iterable[Mapping[str, Any]]) -> None:
        self._packed = packed
        self.versions: Mapping[str, str] = MappingProxyType(packed.versions)
        layouts = [Layout(number, packed) for number in range(packed.layouts)]
        self.entries: tuple[Entry, ...] = tuple(_entry(row, layouts, packed) for row in rows)

    @cached_property
    def of_layout(self) -> tuple[tuple[Entry, ...], ...]:
        """The entries of each layout."""
        found: list[list[Entry]] = [[] for _ in range(self._packed.layouts)]
        for entry in self.entries:
            found[entry.layout.number].append(entry)
        return tuple(map(tuple, found))

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], list[Entry]]:
        found: dict[tuple[str, str], list[Entry]] = {}
        for entry in self.entries:
            found.setdefault((entry.library, entry.name), []).append(entry)
        return found

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of tensors per layout, bookkeeping left out."""
        return self._packed.sizes

    @property
    def segments(self) -> frozenset[str]:
        """Every segment of every name: what is not here is never part of a known name."""
        return self._packed.segments

    @cached_property
    def builders(self) -> tuple[str, ...]:
        """Labels of the builders, "torchvision/resnet18", in their libraries' order."""
        return tuple(dict.fromkeys(entry.label for entry in self.entries))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the builders without their library, each once."""
        return tuple(dict.fromkeys(entry.name for entry in self.entries))

    def weighty_shapes(self, number: int) -> list[Shape]:
        """A layout's shapes in order, without scalars and bookkeeping."""
        return self._packed.weighty_shapes(number)

    def warm(self) -> None:
        """Look up now what recognising needs, instead of at the first file."""
        self._packed.warm()
        _ = self.of_layout

    def __contains__(self, pair: object) -> bool:
        """Whether some architecture has a tensor of this (name, shape), bookkeeping left out."""
        return isinstance(pair, tuple) and bool(self._packed.holders(*pair))

    def shared(self, shapes: Mapping[str, Shape]) -> Counter[int]:
        """Layout -> how many of these (name, shape) it has at its defaults, bookkeeping left out."""
        found: Counter[int] = Counter()
        holders = self._packed.holders
        for name, shape in shapes.items():
            found.update(holders(name, shape))
        return found

    def library_of(self, name: str) -> str:
        """The library that a bare name means: torchvision where it has it, else timm; "" for an unknown name."""
        return next((library for library in LIBRARIES if (library, name) in self._by_name), "")

    def find(
        self,
        name: str,
        options: Iterable[tuple[str, OptionValue]] = (),
        *,
        library: str = "torchvision",
        num_classes: int | None = None,
    ) -> Entry | None:
        """The entry of a builder in the variant that these settings select; other options do not matter.

        Falls back to the builder's plain entry; None for an unknown builder.
        """
        wanted = set(options)
        fitting = [e for e in self._by_name.get((library, name), ()) if wanted.issuperset(e.options)]
        return max(fitting, key=lambda e: (e.needs_classes == (num_classes is not None), len(e.options)), default=None)

    def of(self, spec: ArchitectureSpec) -> Entry | None:
        """The entry of a spec, None when the index has no such builder."""
        entry = self.find(spec.name, spec.options, library=spec.library, num_classes=spec.num_classes)
        if entry is not None and entry.needs_classes and spec.num_classes is None:
            plain = [e for e in self._by_name[spec.library, spec.name] if not e.needs_classes]
            return plain[0] if plain else entry
        return entry


def _entry(row: Mapping[str, Any], layouts: list[Layout], packed: Packed) -> Entry:
    def laws(name: str) -> tuple[Any, ...]:
        return tuple([tuple(law) for law in row.get(name, ())])

    return Entry(
        library=row.get("library", "timm"),
        name=row["name"],
        task=row.get("task", "classification"),
        options=tuple(sorted(row.get("options", {}).items())),
        layout=layouts[row["layout"]],
        kin=row["kin"],
        num_classes=row.get("num_classes"),
        needs_classes=bool(row.get("needs_classes", False)),
        image_size=row.get("image_size"),
        heads=laws("heads"),
        channels=laws("channels"),
        positions=laws("positions"),
        facts=packed.facts[row["facts"]] if "facts" in row else {},
    )


@lru_cache(maxsize=1)
def load_index() -> Index:
    """The shipped index, read once per process (about 0.1 s)."""
    return Index(*unpack(INDEX_FILE))
