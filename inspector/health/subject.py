"""What a check looks at: one state dict, every tensor with its role and its numbers, and what stands beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import is_contiguous, read_array, to_float32
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.errors import InspectorError
from inspector.health.columns import Columns, Flags, columns_of
from inspector.health.roles import Role, roles_of
from inspector.health.thresholds import DEFAULTS, Thresholds
from inspector.health.training.numbers import Measured
from inspector.health.training.state import Training, read_training
from inspector.weights.report import NumberKind, TensorStatistics, WeightsReport

# What a check may read again of one tensor, for a closer look.
_READ_NBYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """One tensor.

    name: as in the state dict. module: "layer1.0.conv1" of "layer1.0.conv1.weight", "" of a name without a point.
    last: "weight" of it. floating: it is of real floats: no counter, index, quantised payload or complex number.
    statistics: None where it has no numbers.
    """

    tensor: TensorInfo
    name: str
    module: str
    last: str
    floating: bool
    role: Role
    statistics: TensorStatistics | None


def examined(
    tensors: Sequence[TensorInfo], measured: Mapping[tuple[str, ...], TensorStatistics]
) -> tuple[Examined, ...]:
    """Those of one state dict, with what was measured of them by path."""
    roles = roles_of(tensors)
    return tuple(examined_as(roles[tensor.path], tensor, measured.get(tensor.path)) for tensor in tensors)


def examined_as(role: Role, tensor: TensorInfo, statistics: TensorStatistics | None) -> Examined:
    """One tensor that is known to be for that."""
    module, _, last = tensor.name.rpartition(".")
    return Examined(
        tensor=tensor,
        name=tensor.name,
        module=module,
        last=last,
        floating=_is_real_float(tensor.dtype),
        role=role,
        statistics=statistics,
    )


@lru_cache(maxsize=64)
def _is_real_float(name: str) -> bool:
    dtype = find_dtype(name)
    return dtype is not None and dtype.floating and not dtype.name.startswith(("complex", "bcomplex"))


class _Kept(dict[tuple[str, ...], NDArray[np.float64]]):
    """Arrays by path, together no larger than one may be."""

    nbytes = 0

    def __setitem__(self, path: tuple[str, ...], array: NDArray[np.float64]) -> None:
        self.nbytes += array.nbytes
        super().__setitem__(path, array)

    def make_room(self, nbytes: int) -> None:
        """The oldest go."""
        while self and self.nbytes + nbytes > _READ_NBYTES:
            self.nbytes -= self.pop(next(iter(self))).nbytes


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What the checks are given.

    tensors: of the state dict, in its order. others: what else was measured, of the rest of the file (an optimizer's
    moments, a second set of weights), by path. left_out: what checks did not look at, names by the reason, noted by
    them while they look (`leave_out`). memo: what several checks need of the numbers and one has worked out.
    """

    checkpoint: Checkpoint
    state: StateDict | None
    tensors: tuple[Examined, ...]
    report: WeightsReport
    others: Mapping[tuple[str, ...], TensorStatistics]
    thresholds: Thresholds = DEFAULTS
    left_out: dict[str, dict[str, None]] = field(default_factory=dict)
    memo: dict[str, Any] = field(default_factory=dict)
    #: The same of what holds for these tensors with these numbers only.
    own_memo: dict[str, Any] = field(default_factory=dict, init=False)
    _kept: _Kept = field(default_factory=_Kept)

    def leave_out(self, why: str, names: Iterable[str]) -> None:
        """Note that a check passes over these. why: half a sentence, the same for all that share it."""
        self.left_out.setdefault(why, {}).update(dict.fromkeys(names))

    def without(self, names: Set[str]) -> Subject:
        """The same, in which these tensors have no numbers."""
        if not names:
            return self
        made: dict[frozenset[str], Subject] = self.own_memo.setdefault("without", {})
        key = frozenset(names)
        if key not in made:
            hidden = [one for one in self.tensors if one.name in key]
            tensors = tuple(replace(one, statistics=None) if one.name in key else one for one in self.tensors)
            made[key] = replace(self, tensors=tensors)
            # What is read of a training are single numbers.
            if all(one.tensor.numel != 1 for one in hidden):
                made[key].__dict__["training"] = self.training
        return made[key]

    @cached_property
    def by_name(self) -> Mapping[str, Examined]:
        """The tensors by name."""
        return {one.name: one for one in self.tensors}

    @cached_property
    def by_module(self) -> Mapping[str, tuple[Examined, ...]]:
        """The tensors that lie directly in a module, by its dotted name."""
        found: dict[str, list[Examined]] = defaultdict(list)
        for one in self.tensors:
            found[one.module].append(one)
        return {module: tuple(tensors) for module, tensors in found.items()}

    @cached_property
    def following(self) -> Mapping[str, str]:
        """The next module under the same parent, in the state dict's order, by module."""
        last: dict[str, str] = {}
        found: dict[str, str] = {}
        for module in self.by_module:
            parent = module.rpartition(".")[0]
            if parent in last:
                found[last[parent]] = module
            last[parent] = module
        return found

    @cached_property
    def layer_scales(self) -> tuple[Examined, ...]:
        """Scales that a whole branch is multiplied by."""
        return tuple(one for one in self.tensors if one.role is Role.LAYER_SCALE)

    @cached_property
    def measured_by_path(self) -> Mapping[tuple[str, ...], TensorStatistics]:
        """What was measured of every tensor of the file, by path."""
        return {**self.others, **{one.tensor.path: one.statistics for one in self.tensors if one.statistics}}

    @cached_property
    def training(self) -> Training:
        """Optimizers, schedules, gradient scalers and counters of the file."""
        tensors = {tensor.path: tensor for tensor in self.checkpoint.tensors}
        measured = Measured(checkpoint=self.checkpoint, tensors=tensors, statistics=self.measured_by_path)
        return read_training(measured, self.state)

    def setting(self, name: str) -> str:
        """What a config beside the file, or in it, says of that setting, in lower case; "" where it is silent."""
        for key, says in self.checkpoint.metadata:
            if key.rpartition(" ")[2].rpartition(".")[2] == name:
                return says.lower()
        return ""

    def beside(self, one: Examined, last: str) -> Examined | None:
        """The tensor of that last name in the same module."""
        return self.by_name.get(f"{one.module}.{last}" if one.module else last)

    def measured(self, *roles: Role) -> Iterator[tuple[Examined, TensorStatistics]]:
        """Floating tensors with numbers, of these roles or, without any, of all; empty ones are left out.

        So are those whose numbers had to be decoded (`decoded`): the levels of a quantised tensor repeat and are often
        zero, and the stored values of a sparse one are not all of it. In plain weights the same would say something.
        """
        if not roles:
            yield from self._plain
            return
        places = [self._places.get(role, ()) for role in dict.fromkeys(roles)]
        for place in places[0] if len(places) == 1 else sorted(chain.from_iterable(places)):
            yield self._plain[place]

    @cached_property
    def columns(self) -> Columns:
        """The numbers of all that `measured` gives, in its order."""
        return columns_of([t for _, t in self._plain])

    def among(self, *roles: Role) -> Flags:
        """(columns,): which of `columns` have one of these roles."""
        found = np.zeros(len(self._plain), np.bool_)
        for role in roles:
            found[self._places.get(role, [])] = True
        return found

    def those(self, flags: Flags) -> Iterator[tuple[Examined, TensorStatistics]]:
        """As `measured`, of those of `columns` that are flagged."""
        for place in np.flatnonzero(flags).tolist():
            yield self._plain[place]

    def of_column(self, place: int) -> tuple[Examined, TensorStatistics]:
        """The tensor that is in that place of `columns`."""
        return self._plain[place]

    def called(self, matches: Callable[[str], object]) -> Iterator[Examined]:
        """Tensors, in their order, whose last name is one of those: it is asked once for each that there is."""
        places = (places for last, places in self._lasts.items() if matches(last))
        for place in sorted(chain.from_iterable(places)):
            yield self.tensors[place]

    def measured_called(self, matches: Callable[[str], object]) -> Iterator[tuple[Examined, TensorStatistics]]:
        """Of `measured` those with such a last name."""
        names = {one.name for one in self.called(matches)}
        if names:
            yield from (each for each in self._plain if each[0].name in names)

    def modules_with(self, role: Role) -> Iterator[tuple[str, tuple[Examined, ...]]]:
        """Of `by_module`, in its order, those that hold a tensor of that role, measured or not."""
        wanted = {one.module for one in self.tensors if one.role is role}
        yield from ((module, inside) for module, inside in self.by_module.items() if module in wanted)

    @cached_property
    def _lasts(self) -> Mapping[str, Sequence[int]]:
        """Of each last name, which of `tensors`."""
        found: dict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(self.tensors):
            found[one.last].append(place)
        return found

    @cached_property
    def _places(self) -> Mapping[Role, Sequence[int]]:
        """Of each role, which of `_plain`: checks of norms need not pass all weights by."""
        found: dict[Role, list[int]] = defaultdict(list)
        for place, (one, _) in enumerate(self._plain):
            found[one.role].append(place)
        return found

    @cached_property
    def _plain(self) -> tuple[tuple[Examined, TensorStatistics], ...]:
        """Those of any role: every check asks."""
        measured = ((one, one.statistics) for one in self.tensors)
        return tuple(
            (one, found)
            for one, found in measured
            if found is not None and found.decoding is None and found.numel and one.floating
        )

    def decoded(self, *kinds: NumberKind) -> Iterator[tuple[Examined, TensorStatistics]]:
        """Tensors whose numbers were decoded, of these kinds; empty ones are left out."""
        for one in self.tensors:
            found = one.statistics
            if found is not None and found.numel and found.decoding is not None and found.decoding.kind in kinds:
                yield one, found

    def stretches(
        self, one: Examined, *, length: int = 4096, most: int = 4, turned: bool = False
    ) -> tuple[NDArray[np.float32], ...]:
        """Up to most runs of its elements in row-major order, spread evenly, each beginning at a multiple of 16.

        turned: the bytes of each element are read the other way round.

        () where the elements cannot be read or do not lie in one run.
        """
        tensor = one.tensor
        if not one.floating or not is_contiguous(tensor) or tensor.encoding is not None:
            return ()
        count = min(most, max(1, tensor.numel // length))
        size = min(length, tensor.numel)
        starts = [(tensor.numel - size) * i // max(1, count - 1) // 16 * 16 for i in range(count)]
        try:
            return tuple(self._run(tensor, start, size, turned) for start in starts)
        except (InspectorError, OSError, ValueError, MemoryError):
            return ()

    def pieces(self, one: Examined, length: int) -> Iterator[NDArray[np.float32]]:
        """All its elements in row-major order, so many at a time; an empty one where they cannot be read."""
        for start in range(0, one.tensor.numel, length):
            try:
                yield self._run(one.tensor, start, min(length, one.tensor.numel - start), turned=False)
            except (InspectorError, OSError, ValueError, MemoryError):
                yield np.empty(0, np.float32)

    def _run(self, tensor: TensorInfo, start: int, size: int, turned: bool) -> NDArray[np.float32]:
        """So many elements of a contiguous tensor from the start-th on."""
        nbytes = tensor.nbytes // tensor.numel * size
        part = replace(tensor, shape=(size,), stride=(1,), offset=tensor.offset + start, nbytes=nbytes)
        raw = read_array(self.checkpoint, part)
        if turned:
            raw = raw.byteswap()
        dtype = find_dtype(tensor.dtype)
        native = dtype is not None and dtype.native
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(raw if native else to_float32(raw, tensor.dtype), np.float32)

    def array(self, one: Examined) -> NDArray[np.float64] | None:
        """Its numbers once more, in its shape and not to be written to; None where they had to be decoded, are too many
        for a closer look or cannot be read. The last ones are kept for other checks."""
        path = one.tensor.path
        if path not in self._kept:
            array = self._read_again(one)
            if array is None:
                return None
            array.flags.writeable = False
            self._kept[path] = array
        return self._kept[path]

    def _read_again(self, one: Examined) -> NDArray[np.float64] | None:
        if one.statistics is not None and one.statistics.decoding is not None:
            return None
        if one.tensor.numel * 8 > _READ_NBYTES:
            self.leave_out(f"not looked at more closely: above {_READ_NBYTES // 8:,} elements", [one.name])
            return None
        self._kept.make_room(one.tensor.numel * 8)
        try:
            raw = read_array(self.checkpoint, one.tensor)
        except (InspectorError, OSError, ValueError, MemoryError):
            self.leave_out("not looked at more closely: it could not be read again", [one.name])
            return None
        dtype = find_dtype(one.tensor.dtype)
        if dtype is not None and dtype.native:
            with np.errstate(invalid="ignore"):
                return raw.astype(np.float64)
        return to_float32(raw, one.tensor.dtype).astype(np.float64)
