"""Could these numbers stand where they stand? Roles have limits that no training leaves.

A batch norm's variance is not negative, a list of positions counts, a causal mask is empty above its diagonal. A norm's
weight and bias have one shape, and only their numbers tell them apart: training starts them at one and zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.casts import has_numbers, numbers_of
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.masks import is_additive_mask
from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.proofs.constants import judge_constant
from inspector.keys.report import Evidence, Proof, Step
from inspector.units import counted

# Nearer to zero, and nearer to one, than trained norms come in both at once. Means over the channels.
_ZERO, _ONE = 0.1, 0.25
_PIECE = 1 << 18  # elements: isfinite makes several copies
_NAMED = 3
_FEW = 4  # channels, below which a mean says nothing
# By these the file itself said which tensor it is; by every other, somebody placed it.
_BY_NAME = (Evidence.EXACT_NAME, Evidence.RULE)


def prove_values(state: Mapping[str, RawTensor], steps: Sequence[Step] = ()) -> Proof:
    """Every tensor of a state dict against what its role allows. steps: how each came to its place, where known."""
    tally = ValueTally(steps)
    for name, tensor in state.items():
        if not tally.look(name, tensor):
            break
    return tally.proof()


class ValueTally:
    """`prove_values` one tensor after the other; a large one in pieces, since isfinite makes copies."""

    def __init__(self, steps: Sequence[Step] = ()) -> None:
        self._placed = {s.target for s in steps if s.source is not None and s.evidence not in _BY_NAME}
        self._total = self._finite = 0
        self._wrong = ""
        self._broken: list[str] = []
        # Infinity is what these are made of; how much of it.
        self._masks: list[str] = []
        self._hidden = 0
        self._notes: list[str] = []
        self._counters: dict[int, int] = {}
        self._floating_counters = 0
        # By module: mean and largest distance from it, of vectors called weight and bias.
        self._vectors: dict[str, dict[str, tuple[float, int]]] = {}

    def look(self, name: str, tensor: RawTensor) -> bool:
        """Take one tensor in. False when it cannot be what it is placed as: the proof has failed."""
        module, _, last = name.rpartition(".")
        dtype = DTYPES[tensor.dtype]
        if dtype.floating:
            self._total += tensor.numel
            finite = sum(_finite(piece, tensor.dtype) for piece in _pieces(tensor))
            self._finite += finite
            if finite < tensor.numel and _is_mask(name, tensor):
                self._masks.append(name)
                self._hidden += tensor.numel - finite
            elif finite < tensor.numel:
                self._broken.append(name)
        if "complex" in tensor.dtype or not has_numbers(tensor.dtype):
            return True
        if last == "running_var" and tensor.numel and bool(np.less(tensor.numbers, 0).any()):
            least = float(np.nanmin(tensor.numbers))
            self._wrong = f"{name} has negative variances, the least {least:.3g}: no batch norm computes these."
        elif last == "num_batches_tracked" and tensor.numel == 1:
            self._count(name, float(tensor.numbers.reshape(())), floating=dtype.floating)
        elif last in ("weight", "bias") and len(tensor.shape) == 1 and tensor.numel >= _FEW and dtype.floating:
            self._vectors.setdefault(module, {})[last] = (_mean(tensor), tensor.numel)
        else:
            wrong, note = judge_constant(name, tensor)
            self._wrong = self._wrong or wrong
            self._notes += [note] if note else []
        return not self._wrong

    def _count(self, name: str, number: float, *, floating: bool) -> None:
        if number < 0:
            self._wrong = f"{name} is negative."
        elif number != number or number != int(number):
            self._wrong = f"{name} is {number:.6g}, and batches are counted in whole numbers."
        else:
            self._counters[int(number)] = self._counters.get(int(number), 0) + 1
            self._floating_counters += floating

    def proof(self) -> Proof:
        """What all that was looked at proves."""
        if not self._wrong:
            self._judge_norms()
        if self._wrong:
            return Proof(id="values", says=self._wrong, passed=False)
        notes = list(self._notes)
        if len(self._counters) > 1:
            low, high = min(self._counters), max(self._counters)
            notes.append(f"The counters of batches differ, {low:,} to {high:,}: parts of it were trained apart.")
        if self._floating_counters:
            notes.append(f"{counted(self._floating_counters, 'counter')} of batches not stored as a whole number.")
        passed: bool | None = True
        beside = f" but the -inf of {_named(self._masks)}, a mask's" if self._masks else ""
        says = f"All of {self._total:,} floating-point values finite{beside}, no negative variance or counter."
        if not self._total:
            says = "No floating-point values in it, no negative variance or counter."
        if self._broken:
            # The file's own illness is kept as it is: no fault of the repair, and nothing to be called sound.
            of = f"{self._total - self._finite - self._hidden:,} of {self._total:,} floating-point values"
            says = f"{of} are NaN or infinite: {_named(self._broken)}{beside.replace(' but', '; beside')}."
            passed = None
        return Proof(id="values", says=" ".join([says, *notes[:3]]), passed=passed)

    def _judge_norms(self) -> None:
        """Weights about zero beside biases about one: what exchanging the two looks like."""
        pairs = {m: both for m, both in self._vectors.items() if len(both) == 2 and _one_size(both)}
        swapped = [m for m, both in pairs.items() if abs(both["weight"][0]) < _ZERO and abs(both["bias"][0] - 1) < _ONE]
        if not swapped:
            return
        doubted = [m for m in swapped if _inside(m, "weight") in self._placed or _inside(m, "bias") in self._placed]
        first = (doubted or swapped)[0]
        weight, bias = pairs[first]["weight"][0], pairs[first]["bias"][0]
        many = f" In {len(swapped):,} of {counted(len(pairs), 'norm')} it is so." if len(pairs) > 1 else ""
        says = (
            f"{first or 'The norm'} has weights about {weight:.2g} and biases about {bias:.2g}; a norm starts with one "
            f"and zero, so its weight and bias look exchanged.{many}"
        )
        if doubted or (len(swapped) > 1 and 2 * len(swapped) > len(pairs)):
            self._wrong = says
        else:
            # Names put them there, and the other norms are sound: an odd layer rather than a wrong place.
            self._notes.append(says)


def _named(names: Sequence[str]) -> str:
    left = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {left:,} more" if left > 0 else "")


def _is_mask(name: str, tensor: RawTensor) -> bool:
    if not has_numbers(tensor.dtype) or "complex" in tensor.dtype:
        return False
    return is_additive_mask(name, (numbers_of(piece, tensor.dtype) for piece in _pieces(tensor)))


def _pieces(tensor: RawTensor) -> Iterator[NDArray[np.generic]]:
    flat = tensor.contiguous().array.reshape(-1)
    return (flat[start : start + _PIECE] for start in range(0, flat.size, _PIECE))


def _finite(piece: NDArray[np.generic], dtype: str) -> int:
    if dtype.startswith("float4"):
        return piece.size  # It has neither NaN nor infinity.
    if dtype in ("complex32", "bcomplex32"):
        half = "float16" if dtype == "complex32" else "bfloat16"
        parts = numbers_of(piece.view(DTYPES[half].raw), half).reshape(-1, 2)
        return int(np.isfinite(parts).all(axis=1).sum())
    return int(np.isfinite(numbers_of(piece, dtype)).sum())


def _mean(tensor: RawTensor) -> float:
    """In float64, without a copy of all of it in that type."""
    total = sum(float(numbers_of(piece, tensor.dtype).sum(dtype=np.float64)) for piece in _pieces(tensor))
    return total / tensor.numel


def _one_size(both: Mapping[str, tuple[float, int]]) -> bool:
    return both["weight"][1] == both["bias"][1]


def _inside(module: str, leaf: str) -> str:
    return f"{module}.{leaf}" if module else leaf
