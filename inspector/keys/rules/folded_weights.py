"""Weight norm, spectral norm and pruning masks in the file, a plain weight in the target: worked out and left behind.

The layer computes the same with the one kernel as it did with the parts, up to rounding; what the parts were for (to be
trained further) is left behind. Names and shapes leave one way, so that it is said and not asked. The other way, a
plain weight becomes the direction of a weight norm and its lengths are measured. A spectral norm's vectors and a mask
cannot be had from a plain weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inspector.checkpoint.types import Shape
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Rule
from inspector.keys.rules.stacked import places_of

_WEIGHT_NORM = (("weight_g", "weight_v"), ("parametrizations.weight.original0", "parametrizations.weight.original1"))
_SPECTRAL_NORM = (
    ("weight_orig", "weight_u", "weight_v"),
    ("parametrizations.weight.original", "parametrizations.weight.0._u", "parametrizations.weight.0._v"),
)


@dataclass(frozen=True, slots=True)
class _Form:
    parts: tuple[str, ...]
    whole: str
    way: str
    says: str


_FORMS = (
    *(_Form(parts, "weight", "weight-norm", "g * v / |v|, exact to rounding") for parts in _WEIGHT_NORM),
    *(_Form(parts, "weight", "spectral-norm", "w / (u w v), exact to rounding") for parts in _SPECTRAL_NORM),
    _Form(("weight_orig", "weight_mask"), "weight", "mask", "the weight times its mask"),
    _Form(("bias_orig", "bias_mask"), "bias", "mask", "the bias times its mask"),
)


def is_part_of(part: str, whole: str) -> bool:
    """Whether the names alone say that the one is worked into the other: conv.weight_v and conv.weight."""
    return any(_ends(whole, form.whole) and any(_ends(part, name) for name in form.parts) for form in _FORMS)


def _ends(name: str, last: str) -> bool:
    return name == last or name.endswith(f".{last}")


def _modules(leaves: Mapping[str, Leaf], last: str) -> Iterator[str]:
    """Names of the modules that have such a tensor, with their dot; "" for one at the top."""
    for name in leaves:
        if _ends(name, last):
            yield name[: len(name) - len(last)]


def _there(module: str, places: Mapping[str, str]) -> str:
    """Where a module of the one side is on the other, by what was placed in it or around it."""
    path = module.rstrip(".").split(".") if module else []
    for depth in range(len(path), -1, -1):
        place = places.get(".".join(path[:depth]))
        if place is not None:
            return "".join(f"{segment}." for segment in (*filter(None, place.split(".")), *path[depth:]))
    return module


def _way(form: _Form, shapes: tuple[Shape, ...], whole: Shape) -> str | None:
    """The step's value where these parts make that whole, None where they do not."""
    if form.way == "mask":
        return "mask" if shapes == (whole, whole) else None
    if form.way == "weight-norm":
        dim = _dim_of(shapes[0], whole)
        return f"weight-norm:{dim}" if shapes[1] == whole and dim is not None else None
    rows = whole[0] if whole else 0
    numel = 1
    for size in whole:
        numel *= size
    square = len(whole) > 1 and whole[0] == whole[1] and len(whole) > 2
    fits = rows > 0 and shapes == (whole, (rows,), (numel // rows,))
    # A transposed convolution is normed over its second dimension: of equal sizes, only the numbers tell which.
    return ("spectral-norm:first" if square else "spectral-norm") if fits else None


def _dim_of(length: Shape, kernel: Shape) -> int | None:
    """The dimension that keeps its size in g, -1 where one length is for all."""
    if length == ():
        return -1
    if len(length) != len(kernel) or len(kernel) < 2:
        return None
    kept = [i for i, size in enumerate(length) if size != 1]
    if len(kept) == 1 and length[kept[0]] == kernel[kept[0]]:
        return kept[0]
    ones = [i for i, size in enumerate(kernel) if size == 1]
    return ones[0] if not kept and ones else None


def _steps(left: Leftovers) -> Iterator[Step]:
    ours, theirs = {leaf.name: leaf for leaf in left.extra}, {leaf.name: leaf for leaf in left.missing}
    if not ours or not theirs:
        return
    places = places_of(left.settled)
    back = {theirs: ours for ours, theirs in places.items()}
    for form in _FORMS:
        for module in _modules(ours, form.parts[0]):
            parts = [ours.get(module + name) for name in form.parts]
            place = theirs.get(_there(module, places) + form.whole)
            found = [part for part in parts if part is not None]
            if place is None or len(found) != len(parts):
                continue
            value = _way(form, tuple(part.shape or () for part in found), place.shape or ())
            if value is not None:
                names = tuple(part.name for part in found)
                yield _step(StepKind.MERGE, names, place, value, f"Worked out as {form.says}.")
    for g, v in _WEIGHT_NORM:
        for module in _modules(theirs, g):
            length, direction = theirs[module + g], theirs.get(module + v)
            weight = ours.get(_there(module, back) + "weight")
            if direction is None or weight is None or weight.shape != direction.shape:
                continue
            dim = _dim_of(length.shape or (), weight.shape or ())
            if dim is not None:
                says = (
                    "The weight as direction, its lengths measured: g * v / |v| is the weight again, but for rounding."
                )
                yield _step(StepKind.RENAME, (weight.name,), direction, "", says)
                yield _step(StepKind.TIE, (weight.name,), length, f"length:{dim}", says)


def _step(kind: StepKind, sources: tuple[str, ...], place: Leaf, value: str, says: str) -> Step:
    return Step(
        kind=kind,
        source=sources[0],
        target=place.name,
        rule=RULE.id,
        reason=says,
        cost=Cost.LOSSY,
        evidence=Evidence.RULE,
        shape=place.shape,
        value=value,
        more=sources[1:],
        # Names leave one way to work it out, and the layer computes the same.
        declared=True,
    )


RULE = Rule(
    id="folded-weights",
    title="Norms and masks worked out",
    says=(
        "Works out weight norm, spectral norm and pruning masks into the plain weight that the target has, or measures "
        "a weight norm's lengths; exact to rounding."
    ),
    cost=Cost.LOSSY,
    done="norms or masks of {tensors} are worked out",
    steps=_steps,
)
