"""LSTM and GRU of Keras, and layers whose gates are apart, as torch's one matrix for all gates.

Keras has (in, gates x units) and one bias where torch has (gates x units, in) and two. Its LSTM's gates stand in
torch's order (i, f, c, o); its bias goes with zeros. Its GRU has z, r, h for torch's r, z, n, and two rows of biases
where the reset comes after the product (`reset_after`), as in torch; with one row it is another function, and nothing
is done. `recurrent_kernel` proves Keras. Gates apart are named as torch's documentation names them: W_ii, W_if, W_ig,
W_io; W_ir, W_iz, W_in. Where several layers could be meant, names must say which. Source: keras layers/rnn/lstm.py,
gru.py; torch nn/modules/rnn.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inspector.checkpoint.types import Shape
from inspector.keys.operations.gates import value_of as gates_of
from inspector.keys.operations.grouped import value_of as grouped_of
from inspector.keys.placing.layouts import own_name
from inspector.keys.placing.roles import split_name
from inspector.keys.placing.tree import Leaf
from inspector.keys.recast import Piece, Recast
from inspector.keys.report import Cost
from inspector.keys.rules.entry import Questions, Rule

# Keras's gates in torch's order.
_ORDERS = {4: (0, 1, 2, 3), 3: (1, 0, 2)}
_LETTERS = {4: "ifgo", 3: "rzn"}
_TORCH = re.compile(r"weight_ih_l([0-9]+)(_reverse)?")
_APART = re.compile(r"(W|w|weight|b|bias)_?([ih])([ifgorzn])")
_CELL = re.compile(r"\.(lstm|gru)_cell(_[0-9]+)?$")
_SAYS_BACK, _SAYS_ON = re.compile(r"(^|[._])backward"), re.compile(r"(^|[._])forward")


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer of either side. module: its name. end: of torch's names. sizes: gates, inputs, units."""

    module: str
    sizes: tuple[int, int, int]
    back: bool
    end: str = ""


def _there(leaves: Sequence[Leaf]) -> dict[str, Leaf]:
    return {leaf.name: leaf for leaf in leaves}


def _shape(there: dict[str, Leaf], name: str) -> Shape:
    return (there[name].shape or ()) if name in there else ()


def _of_torch(leaves: Sequence[Leaf]) -> list[_Layer]:
    there = _there(leaves)
    found = []
    for leaf in leaves:
        module, last = split_name(leaf.name)
        end = _TORCH.fullmatch(last)
        if end is None:
            continue
        shape = leaf.shape or ()
        hidden = _shape(there, _name(module, last.replace("_ih_", "_hh_")))
        if len(shape) != 2 or len(hidden) != 2 or not hidden[1] or hidden[0] != shape[0]:
            continue
        gates = shape[0] // hidden[1]
        if gates in _ORDERS and gates * hidden[1] == shape[0]:
            found.append(_Layer(module, (gates, shape[1], hidden[1]), bool(end[2]), last.removeprefix("weight_ih")))
    return found


def _name(module: str, last: str) -> str:
    return f"{module}.{last}" if module else last


def _of_keras(leaves: Sequence[Leaf]) -> list[tuple[_Layer, Leaf, Leaf, Leaf | None]]:
    """(layer, kernel, recurrent kernel, bias) by the one name that only Keras writes."""
    named = {own_name(leaf): leaf for leaf in leaves}
    found = []
    for (module, last), leaf in named.items():
        shape = leaf.shape or ()
        kernel, bias = named.get((module, "kernel")), named.get((module, "bias"))
        if last != "recurrent_kernel" or len(shape) != 2 or kernel is None or len(kernel.shape or ()) != 2:
            continue
        gates = shape[1] // shape[0] if shape[0] else 0
        inputs, wide = kernel.shape or (0, 0)
        if gates not in _ORDERS or gates * shape[0] != shape[1] or wide != shape[1]:
            continue
        # With one row of biases, and without any, nothing shows whether the reset of a GRU comes after the product.
        wanted = (wide,) if gates == 4 else (2, wide)
        if (bias is None and gates == 3) or (bias is not None and bias.shape != wanted):
            continue
        back = bool(_SAYS_BACK.search(module))
        layer = _Layer(_CELL.sub("", module), (gates, inputs, shape[0]), back)
        found.append((layer, kernel, leaf, bias))
    return found


def _apart(leaves: Sequence[Leaf]) -> list[tuple[_Layer, dict[str, list[Leaf]]]]:
    """(layer, its gates by the name that torch has for all of them) where every gate is there, and lies as torch's."""
    modules: dict[str, dict[tuple[str, str], Leaf]] = {}
    for leaf in leaves:
        module, last = split_name(leaf.name)
        found = _APART.fullmatch(last)
        if found is not None:
            kind = "bias" if found[1].startswith("b") else "weight"
            modules.setdefault(module, {})[f"{kind}_{found[2]}h", found[3]] = leaf
    made = []
    for module, gates in modules.items():
        for letters in _LETTERS.values():
            kinds = dict.fromkeys(kind for kind, _ in gates)
            if {letter for _, letter in gates} != set(letters) or len(gates) != len(kinds) * len(letters):
                continue
            rows = {kind: [gates[kind, letter] for letter in letters] for kind in kinds}
            shape = rows["weight_ih"][0].shape or () if "weight_ih" in rows else ()
            if len(shape) != 2 or "weight_hh" not in rows or any(_differ(row) for row in rows.values()):
                continue
            units, inputs = shape
            wanted = {"weight_ih": shape, "weight_hh": (units, units)}
            # Of as many inputs as units no shape shows which way round they lie.
            if units != inputs and all(row[0].shape == wanted.get(kind, (units,)) for kind, row in rows.items()):
                made.append((_Layer(module, (len(letters), inputs, units), False), rows))
    return made


def _differ(row: Sequence[Leaf]) -> bool:
    return len({leaf.shape for leaf in row}) != 1


def _counterpart(layer: _Layer, among: Sequence[_Layer], own: Sequence[_Layer]) -> _Layer | None:
    """The one layer of torch's that this can be: the only one of its sizes, or of its name."""
    fitting = [x for x in among if x.sizes == layer.sizes and x.back == layer.back]
    rivals = [x for x in own if x.sizes == layer.sizes and x.back == layer.back]
    if len(fitting) == len(rivals) == 1:
        return fitting[0]
    named = [x for x in fitting if x.module == layer.module]
    return named[0] if len(named) == 1 and sum(x.module == layer.module for x in rivals) == 1 else None


def _recasts(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Recast]:
    goals = _of_torch(places)
    if not goals:
        return
    there = _there(places)
    known = set(_there(leaves))
    keras = _of_keras(leaves)
    for layer, kernel, recurrent, bias in keras:
        goal = _counterpart(layer, goals, [one for one, *_ in keras])
        if goal is None or (bias is None) is not (_name(goal.module, f"bias_ih{goal.end}") not in there):
            continue
        order = _ORDERS[layer.sizes[0]]
        for leaf, last in ((kernel, "weight_ih"), (recurrent, "weight_hh")):
            yield _cut(leaf, [there[_name(goal.module, last + goal.end)]], gates_of(order, "turned"))
        names = [_name(goal.module, last + goal.end) for last in ("bias_ih", "bias_hh")]
        if bias is not None and all(name in there for name in names):
            once = len(bias.shape or ()) == 1
            yield _cut(bias, [there[name] for name in names], gates_of(order, "once" if once else ""), once=once)
    apart = _apart(leaves)
    for layer, rows in apart:
        goal = _counterpart(layer, goals, [one for one, _ in apart])
        if goal is None:
            continue
        for kind, row in rows.items():
            name = _name(goal.module, kind + goal.end)
            if name in there and name not in known:
                yield _joined(there[name], row)


def _cut(leaf: Leaf, goals: Sequence[Leaf], value: str, *, once: bool = False) -> Recast:
    rows = (leaf.shape or (1,))[0] // (1 if once else len(goals))
    return Recast(
        rule=RULE.id,
        reason="Keras's gates in torch's order.",
        whole=leaf,
        pieces=tuple(Piece(goal, (i * rows, (i + 1) * rows)) for i, goal in enumerate(goals)),
        in_target=False,
        value=value,
        proved=True,
        oriented=True,
    )


def _joined(whole: Leaf, row: Sequence[Leaf]) -> Recast:
    rows = (row[0].shape or (1,))[0]
    return Recast(
        rule=RULE.id,
        reason="The gates below each other, in torch's order.",
        whole=whole,
        pieces=tuple(Piece(leaf, (i * rows, (i + 1) * rows)) for i, leaf in enumerate(row)),
        in_target=True,
        value=grouped_of(1, [rows] * len(row)),
        proved=True,
        plain=True,
    )


RULE = Rule(
    id="recurrent-gates",
    title="Gates of recurrent layers",
    says=(
        "Puts the gates of Keras's LSTM and GRU into torch's order and its one bias beside zeros, and joins gates that "
        "are apart under the names of torch's documentation (W_ii, W_if, W_ig, W_io)."
    ),
    cost=Cost.LOSSLESS,
    done="the gates of {tensors} are put into torch's order",
    recasts=_recasts,
)
