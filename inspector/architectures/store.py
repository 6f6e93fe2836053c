"""How the index is packed, and the first step of unpacking it.

One gzip file: a line of JSON (entries, shapes, kinds of tensor, published facts, what it was made with), the tensor
names as text, one per line, then arrays of little-endian 32-bit numbers:

    tokens    per distinct tensor: number of the name x number of shapes + number of the shape
    kind_of   per distinct tensor: its (dtype, is buffer) among the header's kinds
    lengths   tensors per layout
    members   the tensors of all layouts, each as the difference to the one before (most are 1)

A layout is the tensors of one builder in the order of its state dict; builders with the same tensors share it.
"""

from __future__ import annotations

import gc
import gzip
import json
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import accumulate
from typing import Any

from inspector.checkpoint.types import Shape
from inspector.errors import BrokenInstall

FORMAT = 2
ARRAYS = ("tokens", "kind_of", "lengths", "members")


@dataclass(frozen=True, kw_only=True, eq=False)
class Packed:
    """The index as numbers. keys: tensor names. shapes, kinds: by number. facts: distinct published facts.

    sizes: tensors per layout without bookkeeping. counters: numbers of the tensors that are bookkeeping.
    again: (tensor, an earlier one of the same name and shape and another kind).
    """

    versions: dict[str, str]
    entries: Sequence[Mapping[str, Any]]
    facts: Sequence[Mapping[str, Any]]
    keys: list[str]
    shapes: list[Shape]
    kinds: list[tuple[str, bool]]
    segments: frozenset[str]
    sizes: tuple[int, ...]
    counters: Sequence[int]
    again: Sequence[tuple[int, int]]
    tokens: list[int]
    kind_of: list[int]
    lengths: list[int]
    steps: Sequence[int]

    @property
    def layouts(self) -> int:
        """How many layouts there are."""
        return len(self.lengths)

    @cached_property
    def _members(self) -> list[int]:
        return list(accumulate(self.steps))

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(self.lengths)]

    def layout(self, number: int) -> list[int]:
        """The tensors of a layout."""
        return self._members[self._starts[number] : self._starts[number + 1]]

    @cached_property
    def _shape_of(self) -> list[Shape | None]:
        """Per distinct tensor; None for scalars and bookkeeping."""
        count = len(self.shapes)
        found = [self.shapes[token % count] or None for token in self.tokens]
        for tensor in self.counters:
            found[tensor] = None
        return found

    def weighty_shapes(self, number: int) -> list[Shape]:
        """A layout's shapes in order, without scalars and bookkeeping."""
        return [shape for shape in map(self._shape_of.__getitem__, self.layout(number)) if shape is not None]

    @cached_property
    def key_numbers(self) -> dict[str, int]:
        """name -> its number."""
        return dict(zip(self.keys, range(len(self.keys)), strict=True))

    @cached_property
    def shape_numbers(self) -> dict[Shape, int]:
        """shape -> its number."""
        return dict(zip(self.shapes, range(len(self.shapes)), strict=True))

    @cached_property
    def postings(self) -> dict[int, list[int]]:
        """token -> numbers of the layouts that hold it; bookkeeping left out."""
        # Hundreds of thousands of small lists: the collector would walk them again and again, and they all stay.
        collecting = gc.isenabled()
        gc.disable()
        try:
            lists: list[list[int]] = [[] for _ in self.tokens]
            for tensor, earlier in self.again:
                lists[tensor] = lists[earlier]
            for number in range(self.layouts):
                for tensor in self.layout(number):
                    lists[tensor].append(number)
            for tensor in self.counters:
                lists[tensor] = []
            return dict(zip(self.tokens, lists, strict=True))
        finally:
            if collecting:
                gc.enable()

    def holders(self, name: str, shape: Shape) -> Sequence[int]:
        """The layouts with a tensor of this name and shape."""
        key, number = self.key_numbers.get(name), self.shape_numbers.get(shape)
        if key is None or number is None:
            return ()
        return self.postings.get(key * len(self.shapes) + number, ())


def unpack(name: str) -> Packed:
    """The index in a shipped file. Raises BrokenInstall when it is another version's."""
    raw = gzip.decompress((files("inspector.architectures") / "data" / name).read_bytes())
    end = raw.index(b"\n")
    header: dict[str, Any] = json.loads(raw[:end])
    if header["format"] != FORMAT:
        raise BrokenInstall(
            f"The architecture index is of format {header['format']}, this program reads {FORMAT}.",
            hint="Install the package again, or run scripts/build_index.py.",
        )
    start = end + 1 + header["names_nbytes"]
    keys = raw[end + 1 : start].decode().split("\n")
    arrays = {}
    for part in ARRAYS:
        nbytes = header["arrays"][part] * 4
        numbers = array("i")
        assert numbers.itemsize == 4
        numbers.frombytes(raw[start : start + nbytes])
        if sys.byteorder == "big":
            numbers.byteswap()
        arrays[part] = numbers
        start += nbytes
    return Packed(
        versions=header["versions"],
        entries=header["entries"],
        facts=header["facts"],
        keys=keys,
        shapes=[tuple(shape) for shape in header["shapes"]],
        kinds=[(dtype, bool(is_buffer)) for dtype, is_buffer in header["kinds"]],
        segments=frozenset(header["segments"]),
        sizes=tuple(header["sizes"]),
        counters=header["counters"],
        again=[(a, b) for a, b in header["again"]],
        tokens=list(arrays["tokens"]),
        kind_of=list(arrays["kind_of"]),
        lengths=list(arrays["lengths"]),
        steps=arrays["members"],
    )


def read_data(name: str) -> dict[str, Any]:
    """One of the shipped JSON files, decoded."""
    packed = (files("inspector.architectures") / "data" / name).read_bytes()
    content: dict[str, Any] = json.loads(gzip.decompress(packed))
    return content
