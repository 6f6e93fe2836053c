"""Where the graph of gradients is cut: functions that got what wants a gradient and gave what wants none."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from inspector.doctor.frames import is_own, line_of_with, own_line, source_line
from inspector.doctor.report import SourceLine
from inspector.forward.watch import tensors_in, watch

_MOST_CUTS = 64
_MOST_NODES = 20_000
# A loop that detaches its state cuts at every step.
_MOST_WALKS = 500
# These leave torch, or say by their name that they cut.
_LEAVES_TORCH = ("numpy", "__array__", "tolist", "item", "__float__", "__int__", "__index__")
_REMAKES = ("tensor", "as_tensor", "from_numpy", "new_tensor", "asarray")
_TELLS = (
    "size", "dim", "numel", "stride", "is_floating_point", "is_complex", "requires_grad_", "data_ptr", "__len__",
    "__repr__", "__hash__", "is_contiguous", "get_device", "element_size", "storage_offset", "__bool__",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cut:
    """name: of what cuts ("detach", "no_grad", "argmax"). reaches: ids of the leaves behind it. whole: it gives
    floating point, or leaves torch: values that carry on."""

    name: str
    line: SourceLine | None
    reaches: frozenset[int]
    whole: bool


class Cuts:
    """Hears of each function while gradients are recorded."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, SourceLine | None], Cut] = {}
        self._walks = 0
        self._left_at: dict[SourceLine, str] = {}
        # line -> (what leaves torch there, what makes a tensor of it again, that tensor).
        self.remade: dict[SourceLine, tuple[str, str, Tensor]] = {}

    def returned(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> None:
        """As a Listener's."""
        name = getattr(function, "__name__", "")
        if name in _REMAKES and isinstance(output, Tensor) and output.is_floating_point():
            line = own_line()
            if line is not None and line in self._left_at:
                self.remade[line] = (self._left_at[line], name, output)
        if name == "__get__":
            if getattr(getattr(function, "__self__", None), "__name__", "") != "data":
                return
            name = ".data"
        if name in _TELLS or name.startswith("__set"):
            return
        given = [t for t in tensors_in((args, kwargs)) if t.requires_grad]
        if not given or len(self._found) >= _MOST_CUTS or self._walks >= _MOST_WALKS:
            return
        made = list(tensors_in(output))
        if any(t.requires_grad for t in made) or (not made and name not in _LEAVES_TORCH):
            return
        if name in _LEAVES_TORCH and (at := own_line()) is not None:
            self._left_at[at] = name
        whole = not made or any(t.is_floating_point() for t in made)
        line = own_line()
        if not torch.is_grad_enabled():
            name, turned_off = _who_turned_it_off()
            line = turned_off or line
        cut = self._found.get((name, line)) or Cut(name, line, frozenset(), whole)
        self._walks += 1
        reaches = cut.reaches.union(*map(_leaves, given))
        self._found[name, line] = replace(cut, reaches=reaches, whole=cut.whole or whole)

    def behind(self, leaves: Collection[int]) -> list[Cut]:
        """Those that stand between one of these leaves and the answer; whole ones where there are any."""
        found = [cut for cut in self._found.values() if not cut.reaches.isdisjoint(leaves)]
        return [cut for cut in found if cut.whole] or found


def _who_turned_it_off() -> tuple[str, SourceLine | None]:
    """(what it is, its line: the decorator's, or that of `with`)."""
    name = "inference_mode" if torch.is_inference_mode_enabled() else "no_grad"
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not watch.__code__:
        code = frame.f_code
        if code.co_filename.endswith("checkpoint.py") and code.co_name == "forward":
            return "checkpoint", None
        decorated = frame.f_locals.get("func") if code.co_filename.endswith("_contextlib.py") else None
        inner = getattr(decorated, "__code__", None)
        if inner is not None and is_own(inner.co_filename):
            return name, source_line(inner.co_filename, inner.co_firstlineno)
        if is_own(code.co_filename):
            at = line_of_with(frame, ("no_grad", "inference_mode", "set_grad_enabled"))
            if at is not None:
                return name, at
        frame = frame.f_back
    return name, None


def _leaves(tensor: Tensor) -> frozenset[int]:
    """Ids of the leaves that its graph begins with."""
    return frozenset((id(tensor),)) if tensor.grad_fn is None else leaves_of(tensor.grad_fn)


def leaves_of(node: Any) -> frozenset[int]:
    """Ids of the leaves that the graph behind a node begins with."""
    waiting: list[Any] = [node]
    seen, found = {node}, set()
    while waiting and len(seen) < _MOST_NODES:
        node = waiting.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.add(id(variable))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return frozenset(found)
