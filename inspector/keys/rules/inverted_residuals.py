"""Networks of inverted residuals (EfficientNet, MobileNet v2 and v3) under torchvision's names and under timm's.

torchvision numbers what stands in a block (`block.1`), timm names it (`conv_dw`, `se`), and MobileNets count their
blocks in one row on one side and by stages on the other. So no table of patterns can tell: blocks are counted off
against each other, and each must hold what its counterpart's names say, or nothing is said at all. What names mean in
both libraries was read from their builders (torchvision/models/efficientnet.py, mobilenetv2.py, mobilenetv3.py;
timm/models/_efficientnet_blocks.py); that the answers are equal was measured with both (docs/conversions.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from inspector.keys.placing.roles import is_counter
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost
from inspector.keys.rules.entry import Move, Questions, Rule, Spelling
from inspector.keys.rules.other_library import wrapper_of

# Module -> module, by their whole paths.
Modules = dict[str, str]

_BLOCK = re.compile(r"features\.([0-9]{1,3}(?:\.[0-9]{1,3})?)\.(?:block|conv)\.")
_STAGED = re.compile(r"blocks\.([0-9]{1,3}\.[0-9]{1,3})\.")
_PLAIN = re.compile(r"features\.([0-9]{1,3})\.[01]")
_LINEAR = re.compile(r"classifier\.([0-9])")
# What timm calls the convolutions of a block and the norms behind them, by how many there are.
_CALLED: dict[int, tuple[tuple[str, ...], ...]] = {
    1: (("conv",),),
    2: (("conv_dw", "conv_pw"), ("conv_exp", "conv_pwl")),
    3: (("conv_pw", "conv_dw", "conv_pwl"),),
}
_EXCITATION = {"fc1": "se.conv_reduce", "fc2": "se.conv_expand"}


def counterparts(ours: Iterable[str], theirs: Iterable[str]) -> Modules:
    """timm's name of every module, by torchvision's; empty where not every one of both has its counterpart.

    ours, theirs: names of tensors as torchvision and as timm write them.
    """
    modules = list(dict.fromkeys(name.rpartition(".")[0] for name in ours))
    there = dict.fromkeys(name.rpartition(".")[0] for name in theirs)
    blocks, staged = _by_block(modules, _BLOCK), _by_block(there, _STAGED)
    ends = sorted({int(found[1]) for module in modules if (found := _PLAIN.fullmatch(module))})
    layers = sorted(int(found[1]) for module in modules if (found := _LINEAR.fullmatch(module)))
    if len(ends) != 2 or not blocks or not 1 <= len(layers) <= 2:
        return {}
    made = {"features.0.0": "conv_stem", "features.0.1": "bn1"}
    first, last = ends
    order, orders = sorted(blocks, key=_numbers), sorted(staged, key=_numbers)
    if len(orders) == len(order) + 1:
        # MobileNet v3: the last convolution is a block of its own, and the head a layer before the classifier.
        end = f"blocks.{orders.pop()}"
        made |= {f"features.{last}.0": f"{end}.conv", f"features.{last}.1": f"{end}.bn1"}
    else:
        made |= {f"features.{last}.0": "conv_head", f"features.{last}.1": "bn2"}
    if len(layers) == 2:
        made[f"classifier.{layers[0]}"] = "conv_head"
    made[f"classifier.{layers[-1]}"] = "classifier"
    if first or len(order) != len(orders):
        return {}
    for here, stage in zip(order, orders, strict=True):
        made |= _inside(blocks[here], f"blocks.{stage}", there)
    whole = set(made) == set(modules) and set(made.values()) == set(there) and len(set(made.values())) == len(made)
    return made if whole else {}


def _by_block(modules: Iterable[str], pattern: re.Pattern[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for module in modules:
        if match := pattern.match(f"{module}."):
            found.setdefault(match[1], []).append(module)
    return found


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"[0-9]+", text)))


def _inside(modules: Sequence[str], block: str, there: Iterable[str]) -> Modules:
    """The counterparts within one block; empty where timm's block has other names than these lead to."""
    excited = {module: module.rpartition(".")[2] for module in modules if module.endswith((".fc1", ".fc2"))}
    # A convolution and the norm behind it, each pair by itself or (MobileNet v2's last) side by side.
    rest = sorted((module for module in modules if module not in excited), key=_numbers)
    if len(rest) % 2:
        return {}
    pairs = list(zip(rest[::2], rest[1::2], strict=True))
    theirs = {module for module in there if module.startswith(f"{block}.")}
    for names in _CALLED.get(len(pairs), ()):
        made = {module: f"{block}.{_EXCITATION[own]}" for module, own in excited.items()}
        for number, ((conv, norm), name) in enumerate(zip(pairs, names, strict=True), start=1):
            made |= {conv: f"{block}.{name}", norm: f"{block}.bn{number}"}
        if set(made.values()) == theirs:
            return made
    return {}


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    prefix = wrapper_of(leaves)
    ours = [leaf.name.removeprefix(prefix) for leaf in leaves]
    theirs = [place.name for place in places]
    for to_timm, (tv, timm) in ((True, (ours, theirs)), (False, (theirs, ours))):
        if not any(name.startswith("features.0.0.") for name in tv) or "conv_stem.weight" not in timm:
            continue
        found = counterparts(tv, timm)
        table = found if to_timm else {there: here for here, there in found.items()}
        if not table or not _fit(leaves, places, prefix, table):
            continue
        names = ("torchvision", "timm") if to_timm else ("timm", "torchvision")
        move = Move(RULE.id, f"call the parts of each block as {names[1]} does, not as {names[0]}", (("to", names[1]),))
        for leaf, own in zip(leaves, ours, strict=True):
            module, _, last = own.rpartition(".")
            yield Spelling(leaf, f"{prefix}{table[module]}.{last}", move)
        return


def _fit(leaves: Sequence[Leaf], places: Sequence[Leaf], prefix: str, table: Modules) -> bool:
    """Whether every tensor gets a place of its shape, but for the last layer, which may have other classes."""
    there = {place.name: place.shape for place in places if not is_counter(place)}
    made = {}
    for leaf in leaves:
        if is_counter(leaf):
            continue
        module, _, last = leaf.name.removeprefix(prefix).rpartition(".")
        made[f"{table[module]}.{last}"] = leaf.shape
    if made.keys() != there.keys():
        return False
    heads = [name for name in there if name.startswith("classifier.")]
    end = {name for name in heads if name.rpartition(".")[0] == heads[-1].rpartition(".")[0]}
    return all(
        shape is None or there[name] is None or name in end or _elements(shape) == _elements(there[name])
        for name, shape in made.items()
    )


def _elements(shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """A 1x1 convolution is a linear layer, which MobileNet v3's head is in one of the two."""
    shape = shape or ()
    return shape[:2] if shape[2:] == (1, 1) else shape


RULE = Rule(
    id="inverted-residuals",
    title="Another library's blocks",
    says=(
        "Calls the parts of EfficientNets and MobileNets (v2, v3) as timm does where torchvision has numbers, or back: "
        "blocks are counted off against each other, and each must hold what its counterpart's names say."
    ),
    cost=Cost.LOSSLESS,
    done="another library's names become the target's",
    spells=_spells,
)
