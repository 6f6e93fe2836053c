"""Comparing one state dict with one architecture: what fits, what follows other settings, what is left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt

from inspector.architectures.index import LINE, SIDE, SQUARE, TABLE, Entry, sized
from inspector.architectures.types import ArchitectureSpec, Candidate
from inspector.architectures.wrappers import View
from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import Shape
from inspector.units import counted, human_share

# Below these a candidate is not named (see `is_worth_naming`).
LEAST_MATCHED = 5
_LEAST_ALIKE = 0.5
LEAST_COVERAGE = 0.5
LEAST_PRECISION = 0.9
LEAST_COVERAGE_OF_PART = 0.05
MOST_TWINS_NAMED = 4


@dataclass(frozen=True, slots=True)
class Fit:
    """What a comparison says before names are listed.

    score: as in `Candidate`. counters_off: bookkeeping that is missing or left over.
    """

    entry: Entry
    view: View
    spec: ArchitectureSpec
    score: float
    counters_off: int

    @property
    def group(self) -> tuple[object, ...]:
        """Equal for builders whose names and shapes are the same under the settings that the file shows."""
        entry = self.entry
        shapes = entry.layout.shapes
        changed = settings_changed(entry, self.spec)
        names = entry.layout.names
        return entry.kin, frozenset((names[i], changed.get(i, shapes[i])) for i in entry.following)


def infer_spec(entry: Entry, shapes: Mapping[str, Shape]) -> ArchitectureSpec:
    """The entry's spec with the class count, input channels and picture size that the shapes show.

    A setting equal to the builder's default stays None. Where heads disagree, the majority counts.
    """
    classes = _most_common(_setting_shown(entry, entry.heads, shapes), entry.num_classes)
    channels = _most_common(_setting_shown(entry, entry.channels, shapes), 3 if entry.channels else None)
    size = _most_common(_sizes_shown(entry, shapes), entry.image_size)
    options = dict(entry.options)
    if size is not None and size != entry.image_size:
        options["image_size"] = size
    return ArchitectureSpec(
        library=entry.library,
        name=entry.name,
        num_classes=None if classes == entry.num_classes and not entry.needs_classes else classes,
        in_channels=None if channels == 3 else channels,
        options=tuple(sorted(options.items())),
    )


def shapes_for(entry: Entry, spec: ArchitectureSpec) -> tuple[Shape, ...]:
    """The shapes of an entry's tensors under a spec, parallel to `entry.tensors`."""
    return entry.at(num_classes=spec.num_classes, in_channels=spec.in_channels, image_size=spec.image_size)


def settings_changed(entry: Entry, spec: ArchitectureSpec) -> dict[int, Shape]:
    """position -> shape, of the tensors that follow what the spec sets."""
    return entry.changed(num_classes=spec.num_classes, in_channels=spec.in_channels, image_size=spec.image_size)


def fit(entry: Entry, view: View, shared: int) -> Fit:
    """The score that `compare` would give, without listing names.

    shared: how many of the view's (name, shape) the entry has at its defaults, bookkeeping left out.
    """
    spec = infer_spec(entry, view.shapes)
    layout = entry.layout
    for i, shape in settings_changed(entry, spec).items():
        own = view.shapes.get(layout.names[i])
        shared += (own == shape) - (own == layout.shapes[i])
    present = len(layout.weighty & view.shapes.keys())
    score = shared / max(1, len(layout.weighty) + view.weighty - present)
    return Fit(entry, view, spec, score, len(layout.counters ^ view.counters))


def compare(entry: Entry, view: View) -> Candidate:
    """The evidence for and against one architecture; `twins` is left empty."""
    spec = infer_spec(entry, view.shapes)
    matched, missing, reshaped = [], [], []
    for name, shape in zip(entry.layout.names, shapes_for(entry, spec), strict=True):
        own = view.shapes.get(name)
        if own is None:
            missing.append(name)
        elif own == shape:
            matched.append(name)
        else:
            reshaped.append((name, own, shape))
    expected = set(entry.layout.names)
    extra = (*(name for name in view.shapes if name not in expected), *view.outside)
    fitting, of_target, left_over = (_weighty(matched), _weighty(expected), _weighty(extra))
    candidate = Candidate(
        spec=spec,
        twins=(),
        matched=tuple(matched),
        missing=tuple(missing),
        extra=extra,
        reshaped=tuple(reshaped),
        wrapper=view.wrapper,
        score=fitting / max(1, of_target + left_over),
        exact=fitting == of_target and not left_over and not reshaped,
        says="",
    )
    return with_sentence(candidate, entry)


def coverage(candidate: Candidate) -> float:
    """Share of the architecture's tensors that the file has, bookkeeping left out."""
    fitting = _weighty(candidate.matched)
    expected = fitting + _weighty(candidate.missing) + _weighty(name for name, _, _ in candidate.reshaped)
    return fitting / max(1, expected)


def precision(candidate: Candidate) -> float:
    """Share of the file's tensors that belong to the architecture, bookkeeping left out."""
    fitting = _weighty(candidate.matched)
    present = fitting + _weighty(candidate.extra) + _weighty(name for name, _, _ in candidate.reshaped)
    return fitting / max(1, present)


def bookkeeping_off(candidate: Candidate) -> int:
    """How many counters are missing or left over; tells variants apart that differ in nothing else."""
    off = (*candidate.missing, *candidate.extra)
    return len(off) - _weighty(off)


def computing_twins(candidate: Candidate) -> tuple[str, ...]:
    """Twins that compute something else, or may, as people call them: by name, with the library where it is another.

    A quantised builder that was not quantised yet computes the same.
    """
    found = []
    for library, _, name in (label.partition("/") for label in candidate.twins):
        if library != candidate.spec.library:
            found.append(f"{library}/{name}")
        elif name.removeprefix("quantized_") != candidate.spec.name:
            found.append(name)
    return tuple(found)


def is_worth_naming(candidate: Candidate) -> bool:
    """At least half of the architecture is there, or nearly all of the file is a part of it.

    The second case is a truncated or partial file. Two conditions keep small coincidences out: a linear probe is not
    a resnet because its "fc.weight" has a resnet's shape.
    """
    if _weighty(candidate.matched) < LEAST_MATCHED:
        return False
    covered = coverage(candidate)
    return covered >= LEAST_COVERAGE or (precision(candidate) >= LEAST_PRECISION and covered >= LEAST_COVERAGE_OF_PART)


def is_near(candidate: Candidate) -> bool:
    """Too little to name, enough to mention."""
    return _weighty(candidate.matched) >= LEAST_MATCHED and coverage(candidate) >= 0.2


def with_sentence(candidate: Candidate, entry: Entry) -> Candidate:
    """The same candidate with its evidence as one sentence (two with twins). entry: what it was compared with."""
    spec = candidate.spec
    reshaped = {name for name, _, _ in candidate.reshaped}
    if not candidate.exact and any(entry.layout.names[i] in reshaped for i, *_ in entry.heads):
        # What its head would count as classes is the width of another layer.
        spec = replace(spec, num_classes=None)
    elif is_only_near(candidate) and candidate.score < _LEAST_ALIKE:
        # Of another network nobody knows whether the last matrix gives classes.
        spec = replace(spec, num_classes=None)
    says = evidence_of(candidate, describe(spec), is_trunk=holds_trunk(candidate, entry))
    return replace(candidate, says=says)


def is_only_near(candidate: Candidate) -> bool:
    """Whether the architecture and the file each have tensors that do not fit the other, bookkeeping left out."""
    reshaped = _weighty(name for name, _, _ in candidate.reshaped)
    return not candidate.exact and bool(reshaped or (_weighty(candidate.missing) and _weighty(candidate.extra)))


def is_another(candidate: Candidate, entry: Entry | None) -> bool:
    """Whether it is only near the architecture, with tensors of another shape: then it was neither this one nor any of
    the same names and shapes."""
    if candidate.exact or not _weighty(name for name, _, _ in candidate.reshaped):
        return False
    return entry is None or not holds_trunk(candidate, entry)


def is_called_near(candidate: Candidate, *, is_trunk: bool) -> bool:
    """Whether it is said to be near the architecture: neither it, nor a part of it, nor something that contains it.
    is_trunk: see `holds_trunk`."""
    extra = _weighty(candidate.extra)
    return not candidate.exact and not (extra and is_trunk) and bool(extra or candidate.reshaped)


def holds_trunk(candidate: Candidate, entry: Entry) -> bool:
    """Whether the architecture is there whole but for its last layers, as when a model uses it as its backbone."""
    missing = set(candidate.missing)
    absent = [name in missing for name in entry.layout.names if not is_bookkeeping(name)]
    first_gap = absent.index(True) if True in absent else len(absent)
    return not candidate.reshaped and first_gap * 2 >= len(absent) and all(absent[first_gap:])


def either(names: Sequence[str]) -> str:
    """'a, b or c'; of many, the first few and how many more."""
    shown = list(names[:MOST_TWINS_NAMED])
    if len(names) > len(shown):
        return f"{', '.join(shown)} and {len(names) - len(shown)} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def describe(spec: ArchitectureSpec) -> str:
    """'torchvision's resnet18 with 10 classes and 1 input channel'."""
    parts = []
    if spec.num_classes is not None:
        parts.append(counted(spec.num_classes, "class", "classes"))
    if spec.in_channels is not None:
        parts.append(counted(spec.in_channels, "input channel"))
    options = dict(spec.options)
    if "image_size" in options:
        parts.append(f"pictures of {options['image_size']} pixels")
    if options.get("aux_loss"):
        parts.append("its auxiliary head")
    if options.get("quantize"):
        parts.append("quantised weights")
    text = f"{spec.library}'s {spec.name}"
    if parts:
        text += " with " + (parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}")
    if options.get("aux_logits") is False:
        text += " without its auxiliary heads"
    return text


def evidence_of(candidate: Candidate, what: str, *, is_trunk: bool) -> str:
    """What fits and what does not, in a sentence. what: the architecture in words. is_trunk: see `holds_trunk`."""
    total = len(candidate.matched) + len(candidate.missing) + len(candidate.reshaped)
    where = f' under "{candidate.wrapper}"' if candidate.wrapper else ""
    if candidate.exact and not candidate.missing:
        fits = f"all {counted(total, 'tensor')} fit by name and shape"
    elif candidate.exact:
        counters = counted(len(candidate.missing), "batch counter")
        fits = f"all {counted(len(candidate.matched), 'weight')} fit by name and shape, only {counters} are absent"
    else:
        share = "all" if len(candidate.matched) == total else f"{len(candidate.matched):,}"
        fits = f"{share} of its {counted(total, 'tensor')} fit by name and shape"
        faults = [
            (len(candidate.reshaped), "{} of another shape"),
            (len(candidate.missing), "{} missing"),
            (len(candidate.extra), "{} not known to it"),
        ]
        rest = ", ".join(text.format(f"{n:,}") for n, text in faults if n)
        fits += f" ({rest})" if rest else ""
    is_near_only = is_called_near(candidate, is_trunk=is_trunk)
    if candidate.exact:
        start = f"This is {what}"
    elif _weighty(candidate.extra) and is_trunk:
        start = f"This contains {what}"
    elif not _weighty(candidate.extra) and not candidate.reshaped:
        start = f"This is a part of {what}"
    else:
        start = f"This is near {what} ({human_share(candidate.score)} alike)"
    text = f"{start}{where}: {fits}."
    twins = computing_twins(candidate)
    if twins and is_near_only and candidate.reshaped:
        text += f" It is as near to {either(twins)}, of the same names and shapes."
    elif twins:
        text += f" The file cannot tell it from {either(twins)}: the names and shapes are the same."
    return text


def _weighty(names: Iterable[str]) -> int:
    """How many of these names are not bookkeeping."""
    return sum(not is_bookkeeping(name) for name in names)


def _most_common(shown: Iterable[int], default: int | None) -> int | None:
    votes = Counter(shown)
    # The default wins ties: a pretrained trunk with one replaced head out of two says less than the builder does.
    return max(votes, key=lambda value: (votes[value], value == default), default=default)


def _only_differs_at(own: Shape, expected: Shape, *dims: int) -> bool:
    return len(own) == len(expected) and all(
        i in dims or a == b for i, (a, b) in enumerate(zip(own, expected, strict=True))
    )


def _setting_shown(
    entry: Entry, laws: Iterable[tuple[int, int, int, int]], shapes: Mapping[str, Shape]
) -> Iterable[int]:
    """What the tensors that follow a setting say about it: size = factor x setting + offset."""
    for i, dim, factor, offset in laws:
        own = shapes.get(entry.layout.names[i])
        if own is not None and _only_differs_at(own, entry.layout.shapes[i], dim):
            setting, odd = divmod(own[dim] - offset, factor)
            if setting > 0 and not odd:
                yield setting


def _sizes_shown(entry: Entry, shapes: Mapping[str, Shape]) -> Iterable[int]:
    for i, dim, patch, offset, kind in entry.positions:
        own = shapes.get(entry.layout.names[i])
        # Tables of relative positions follow the size in two dimensions.
        followed = [law[1] for law in entry.positions if law[0] == i]
        if own is not None and _only_differs_at(own, entry.layout.shapes[i], *followed):
            side = patches_of(kind, own[dim] - offset)
            if side:
                # 384 pixels have 27 patches of 14, as 378 have.
                usual = entry.image_size or 0
                yield usual if usual // patch == side else side * patch


def patches_of(kind: int, size: int) -> int:
    """The patches along one side that give a dimension this size, 0 where none do. The inverse of `index.sized`."""
    root = isqrt(max(0, size))
    guess = {SQUARE: root, TABLE: (root + 1) // 2, LINE: (size + 1) // 2, SIDE: size}[kind]
    return guess if guess > 0 and sized(kind, guess) == size else 0
