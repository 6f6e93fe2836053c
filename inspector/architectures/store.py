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

import gzip
import json
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import accumulate, chain, repeat
from typing import Any

from inspector.checkpoint.types import Shape
from inspector.errors import BrokenInstall

FORMAT = 2
ARRAYS = ("tokens", "kind_of", "lengths", "members")


@dataclass(frozen=True, kw_only=True, eq=False)
class Packed:
    """The index as numbers. keys: tensor names. shapes, kinds: by number. facts: distinct published facts.

    It stays in arrays: as Python's own numbers and lists it took 110 MB of every process that looks at a file.
    sizes: tensors per layout without bookkeeping. counters: numbers of the tensors that are bookkeeping.
    again: (tensor, an earlier one of the same name and shape and another kind).
    """

    versions: dict[str, str]
    facts: Sequence[Mapping[str, Any]]
    keys: list[str]
    shapes: list[Shape]
    kinds: list[tuple[str, bool]]
    segments: frozenset[str]
    sizes: tuple[int, ...]
    counters: Sequence[int]
    again: Sequence[tuple[int, int]]
    tokens: array[int]
    kind_of: array[int]
    lengths: array[int]
    members: array[int]

    @property
    def layouts(self) -> int:
        """How many layouts there are."""
        return len(self.lengths)

    @cached_property
    def _starts(self) -> array[int]:
        return array("i", accumulate(self.lengths, initial=0))

    def layout(self, number: int) -> array[int]:
        """The tensors of a layout."""
        return self.members[self._starts[number] : self._starts[number + 1]]

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
    def _owner(self) -> array[int]:
        """Per distinct tensor: the one that stands for its name and shape, -1 for bookkeeping."""
        found = array("i", range(len(self.tokens)))
        for tensor, earlier in self.again:
            found[tensor] = earlier
        for tensor in self.counters:
            found[tensor] = -1
        return found

    @cached_property
    def _of_name(self) -> tuple[array[int], array[int]]:
        """The distinct tensors of each name, chained."""
        count = len(self.shapes)
        return _chained([token // count for token in self.tokens], len(self.keys))

    @cached_property
    def _postings(self) -> tuple[array[int], array[int]]:
        """The places among the members of each distinct tensor, chained; those of bookkeeping behind all others."""
        return _chained(list(map(self._owner.__getitem__, self.members)), len(self.tokens) + 1)

    @cached_property
    def _layout_of(self) -> array[int]:
        """Per place among the members."""
        return array("i", chain.from_iterable(map(repeat, range(self.layouts), self.lengths)))

    def warm(self) -> None:
        """Look up now what finding holders needs, instead of at the first file."""
        _ = self._postings, self._layout_of, self._of_name, self.key_numbers, self.shape_numbers

    def holders(self, name: str, shape: Shape) -> Sequence[int]:
        """The layouts with a tensor of this name and shape, bookkeeping left out."""
        key, number = self.key_numbers.get(name), self.shape_numbers.get(shape)
        if key is None or number is None:
            return ()
        token, found = key * len(self.shapes) + number, list[int]()
        (first, following), (first_place, next_place) = self._of_name, self._postings
        tensor = first[key]
        while tensor >= 0 and self.tokens[tensor] != token:
            tensor = following[tensor]
        place = first_place[tensor] if tensor >= 0 and self._owner[tensor] >= 0 else -1
        while place >= 0:
            found.append(self._layout_of[place])
            place = next_place[place]
        return found


def _chained(groups: Sequence[int], count: int) -> tuple[array[int], array[int]]:
    """(the first place of each group, the place after each one in its group), -1 for none.

    groups: of each place, -1 for the last one. Lists of the same are hundreds of thousands of objects.
    """
    first, following = array("i", [-1]) * count, array("i", [-1]) * len(groups)
    for place, group in zip(range(len(groups) - 1, -1, -1), reversed(groups), strict=True):
        following[place] = first[group]
        first[group] = place
    return first, following


def unpack(name: str) -> tuple[Packed, Sequence[Mapping[str, Any]]]:
    """(the index in a shipped file, a row for each entry). Raises BrokenInstall when it is another version's."""
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
    packed = Packed(
        versions=header["versions"],
        facts=header["facts"],
        keys=keys,
        shapes=[tuple(shape) for shape in header["shapes"]],
        kinds=[(dtype, bool(is_buffer)) for dtype, is_buffer in header["kinds"]],
        segments=frozenset(header["segments"]),
        sizes=tuple(header["sizes"]),
        counters=header["counters"],
        again=[(a, b) for a, b in header["again"]],
        tokens=arrays["tokens"],
        kind_of=arrays["kind_of"],
        lengths=arrays["lengths"],
        members=array("i", accumulate(arrays["members"])),
    )
    return packed, header["entries"]


def read_data(name: str) -> dict[str, Any]:
    """One of the shipped JSON files, decoded."""
    packed = (files("inspector.architectures") / "data" / name).read_bytes()
    content: dict[str, Any] = json.loads(gzip.decompress(packed))
    return content
