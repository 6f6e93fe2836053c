"""The same names spelled otherwise, as converters and other languages do: numbers, cases, brackets, last names."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from torch import Tensor

from benchmarks.keybench.damage import Corruption, Damaged, Make, Row, State, damaged, renamed

BY_ORDER = ("same-order",)


def _numbers(change: Callable[[str], str]) -> Make:
    return renamed(lambda name: re.sub(r"(?<=\.)\d+(?=\.)", lambda found: change(found[0]), name))


def _brackets(name: str) -> str:
    return re.sub(r"\.(\d+)(?=\.)", r"[\1]", name)


def _camel(name: str) -> str:
    return re.sub(r"(?<=[a-z])_([a-z])", lambda found: found[1].upper(), name)


def _capitals(name: str) -> str:
    module, _, leaf = name.rpartition(".")
    return f"{'.'.join(s[:1].upper() + s[1:] for s in module.split('.'))}.{leaf}" if module else name


def _ended(name: str) -> str:
    """Every module with what it is behind its name: attn_module, conv1_module."""
    module, _, leaf = name.rpartition(".")
    return f"{'.'.join(s if s.isdigit() else f'{s}_module' for s in module.split('.'))}.{leaf}" if module else name


def _leaves(table: dict[str, str], *, norms_only: bool = False) -> Make:
    def make(own: State, _: random.Random) -> Damaged:
        rows = []
        for name, tensor in own.items():
            module, _dot, leaf = name.rpartition(".")
            weight = own.get(f"{module}.weight")
            fits = bool(module) and not (norms_only and (weight is None or weight.dim() != 1))
            rows.append(Row(f"{module}.{table.get(leaf, leaf)}" if fits else name, tensor, name))
        return damaged(rows, own)

    return make


def _by_kind(*, ordered: bool) -> Make:
    """conv2d_7, dense_3, batch_normalization_2: layers by what they are and a running number, as in Keras."""

    def make(own: State, _: random.Random) -> Damaged:
        count: dict[str, int] = {}
        names: dict[str, str] = {}
        rows = []
        for name, tensor in own.items():
            module, _dot, leaf = name.rpartition(".")
            if module not in names:
                kind = _kind(own.get(f"{module}.weight"), f"{module}.running_mean" in own)
                number = count.get(kind, 0)
                count[kind] = number + 1
                names[module] = f"{kind}_{number}" if number else kind
            rows.append(Row(f"{names[module]}.{leaf}", tensor, name))
        return damaged(rows if ordered else sorted(rows, key=lambda row: row.key), own)

    return make


def _kind(weight: Tensor | None, has_statistics: bool) -> str:
    if weight is None:
        return "variable"
    if weight.dim() == 1:
        return "batch_normalization" if has_statistics else "layer_normalization"
    return {2: "dense", 3: "conv1d", 4: "conv2d", 5: "conv3d"}.get(weight.dim(), "layer")


def _flat(dims: int, shape: Callable[[int], tuple[int, ...]]) -> Make:
    """Norms and scales with axes of one element, as other libraries broadcast them."""

    def make(own: State, _: random.Random) -> Damaged:
        rows = []
        for name, tensor in own.items():
            wide = tensor.dim() == dims and name.rpartition(".")[2] in ("weight", "bias", "running_mean", "running_var")
            norm = wide and own.get(f"{name.rpartition('.')[0]}.weight", tensor).dim() == 1
            rows.append(Row(name, tensor.reshape(shape(len(tensor))) if norm else tensor, name))
        return damaged(rows, own)

    return make


def _as_convolution(name: str, tensor: Tensor) -> Tensor:
    wide = tensor.dim() == 2 and name.endswith("weight") and not re.search(r"embed|\.wte|\.wpe|table", name)
    return tensor[:, :, None, None] if wide else tensor


def _convolved(own: State, _: random.Random) -> Damaged:
    """Linear layers as convolutions of one pixel."""
    return damaged((Row(name, _as_convolution(name, tensor), name) for name, tensor in own.items()), own)


SPELLING = (
    Corruption("numbers 00, 01", _numbers(lambda n: n.zfill(2))),
    Corruption("numbers 000, 001", _numbers(lambda n: n.zfill(3))),
    Corruption("every second number", _numbers(lambda n: str(2 * int(n))), BY_ORDER),
    Corruption("numbers from 10", _numbers(lambda n: str(int(n) + 10)), BY_ORDER),
    Corruption("numbers in brackets", renamed(_brackets), BY_ORDER),
    Corruption("camelCase", renamed(_camel), BY_ORDER),
    Corruption("Capital Letters", renamed(_capitals), BY_ORDER),
    Corruption("lower case", renamed(str.lower), BY_ORDER),
    Corruption("every segment _module", renamed(_ended), BY_ORDER),
    Corruption("colons for dots", renamed(lambda name: name.replace(".", "::")), BY_ORDER),
    Corruption("hyphens for dots", renamed(lambda name: name.replace(".", "-")), BY_ORDER),
    Corruption("w, b", _leaves({"weight": "w", "bias": "b"}), BY_ORDER),
    Corruption("norms g, b", _leaves({"weight": "g", "bias": "b"}, norms_only=True), BY_ORDER),
    Corruption("norms scale, shift", _leaves({"weight": "scale", "bias": "shift"}, norms_only=True), BY_ORDER),
    Corruption(
        "moving_mean, moving_var",
        _leaves({"running_mean": "moving_mean", "running_var": "moving_var"}),
        answers={"transposed-shapes": "as-it-is"},
        at={"transposed": lambda name: "as-it-is"},
    ),
    Corruption("conv2d_7, dense_3", _by_kind(ordered=True), BY_ORDER),
    Corruption("conv2d_7, dense_3, sorted", _by_kind(ordered=False), BY_ORDER),
    Corruption("norms as [1, C]", _flat(1, lambda n: (1, n))),
    Corruption("norms as [1, C, 1, 1]", _flat(1, lambda n: (1, n, 1, 1))),
    Corruption("Linear as 1x1 convolution", _convolved),
)
