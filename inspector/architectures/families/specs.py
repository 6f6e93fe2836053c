"""A family's spec, written and read: its label, its target, its words, and what its forward pass still needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice

from inspector.architectures.families.assume import assumptions
from inspector.architectures.families.entry import Family, Settings
from inspector.architectures.families.expressions import symbols_in
from inspector.architectures.families.solve import MOST_TENSORS, all_settings, expand, unsolved, values_of
from inspector.architectures.families.template import BARE, Line, places_of, template_of
from inspector.architectures.suggest import suggest
from inspector.architectures.types import ArchitectureSpec, Assumption, Given, OptionValue, Target, TargetKind
from inspector.errors import UsageError

FIELDS = ("num_classes", "in_channels")
# What takes one batch of pictures and answers with one tensor, or with a mapping that has it under "out".
PICTURE_TASKS = ("classification", "segmentation")
USUAL_SIDE = 224
_MOST = 10_000_000


def settings_in(spec: ArchitectureSpec) -> dict[str, OptionValue]:
    """Everything that a spec sets, by name."""
    fields = {"num_classes": spec.num_classes, "in_channels": spec.in_channels}
    return {**dict(spec.options), **{name: value for name, value in fields.items() if value is not None}}


def spec_of(
    family: Family, settings: Settings, stated: Mapping[str, tuple[str, str]] | None = None
) -> tuple[ArchitectureSpec, tuple[Assumption, ...]]:
    """The spec of these settings, with what is stated as options; and what was stated, with where.

    stated: key -> (text, where it stands), see `claims.stated_settings`.
    """
    options = {key: value for key, value in settings.items() if key not in FIELDS}
    assumed, confirmed = assumptions(family, settings, stated or {})
    options.update({one.name: one.value for one in confirmed})
    spec = ArchitectureSpec(
        library=family.library,
        name=family.name,
        num_classes=_whole(settings.get("num_classes")),
        in_channels=_whole(settings.get("in_channels")),
        options=tuple(sorted(options.items())),
        assumed=assumed,
    )
    return spec, confirmed


def read_spec(family: Family, query: str) -> ArchitectureSpec:
    """'layers=12&hidden=768&heads=12' as a spec; what is not written and no shape tells is assumed.

    Raises UsageError for a setting that the family has not, with the nearest names.
    """
    known = settings_known(family)
    settings: dict[str, OptionValue] = {}
    for pair in filter(None, query.split("&")):
        key, _, text = pair.partition("=")
        if key not in known:
            hint = suggest(key, known) or f"Known: {', '.join(known)}."
            raise UsageError(f'{family.label} has no setting "{key}".', hint=hint)
        settings[key] = _read(key, text)
    values_of(family, settings, bare=bool(settings.get(BARE)))  # refuses tuples of the wrong length
    return spec_of(family, settings)[0]


def settings_known(family: Family) -> tuple[str, ...]:
    """Names of everything that can be written behind a family's label."""
    places = places_of(template_of(family, False))
    bare = (BARE,) if family.base else ()
    return (*places, *bare, *(one.name for one in family.assumes))


def follow_family(family: Family, spec: ArchitectureSpec, seen: ArchitectureSpec) -> ArchitectureSpec:
    """The spec with what it leaves open taken from another of the same family."""
    return spec_of(family, {**settings_in(seen), **settings_in(spec)})[0]


def target_of_family(family: Family, spec: ArchitectureSpec) -> Target:
    """The state dict of a family under a spec, in the model's order; shapes are None where a size is not set.

    Raises UsageError where the spec does not even say how many layers there are, or more than any model has.
    """
    # True and 1 are equal, and not the same text: the label is made from it.
    return _target_of_family(family, spec, repr(spec))


# One opening asks several times for the target of its file. It has a record for each tensor, so few are kept.
@lru_cache(maxsize=2)
def _target_of_family(family: Family, spec: ArchitectureSpec, _: str) -> Target:
    settings = settings_in(spec)
    bare = bool(settings.get(BARE))
    counts = template_of(family, bare).counts
    values = values_of(family, settings, bare=bare)
    found = list(islice(expand(family, values, bare=bare), MOST_TENSORS + 1))
    missing = [name for name in unsolved(family, settings, bare=bare, expected=found) if name in counts]
    if missing:
        raise UsageError(
            f"{family.label} comes in many sizes; {', '.join(missing)} must be known.",
            hint=f"Write them behind its name ({family.label}?{missing[0]}=...), or open a file of it.",
        )
    if len(found) > MOST_TENSORS:
        raise UsageError(f"{spec.label} has more tensors than any model.")
    heads, first = [], []
    symbols: dict[Line, list[set[str]]] = {}
    for one in found:
        sizes = symbols.get(one.line)
        if sizes is None:
            sizes = symbols[one.line] = [{name for name, _ in symbols_in(node)} for node in one.line.sizes]
        if sizes and "num_classes" in sizes[0]:
            heads.append(one.tensor.name)
        if len(sizes) > 3 and "in_channels" in sizes[1]:
            first.append(one.tensor.name)
    return Target(
        label=spec.label,
        kind=TargetKind.ARCHITECTURE,
        tensors=tuple(one.tensor for one in found),
        spec=spec,
        heads=tuple(heads),
        first_convolutions=tuple(first),
    )


def arguments_for(family: Family, spec: ArchitectureSpec) -> dict[str, OptionValue]:
    """All settings for the family's builder: every symbol, every flag, and what is stated or assumed.

    Raises UsageError, naming the sizes that are not set.
    """
    settings = settings_in(spec)
    bare = bool(settings.get(BARE))
    missing = unsolved(family, settings, bare=bare)
    if missing:
        raise UsageError(f"To build {family.label}, {', '.join(missing)} must be known.")
    full = all_settings(family, settings, bare=bare)
    full.setdefault(BARE, bare)
    return {**{one.name: one.value for one in spec.assumed}, **full}


def words_for(family: Family, spec: ArchitectureSpec) -> str:
    """'BERT (12 layers of width 768, 30522 tokens)'."""
    settings = settings_in(spec)
    shown = {name: _shown(settings.get(name)) for name in (*settings_known(family), BARE)}
    text = family.summary.format_map(shown)
    form = family.form(settings) if family.form is not None else ""
    title = f"{family.title} {form}" if form else family.title
    return f"{title} ({text})" if text else title


def input_of(family: Family, spec: ArchitectureSpec) -> tuple[int, int, int]:
    """(channels, height, width) of the pictures that a family takes; 224 pixels where the file does not say."""
    side = family.image_size(settings_in(spec)) if family.image_size else USUAL_SIDE
    return spec.in_channels or 3, side, side


def inputs_of(family: Family, spec: ArchitectureSpec) -> tuple[Given, ...]:
    """Everything that a forward pass of a family takes; () where nobody wrote down what that is."""
    if family.inputs is not None:
        return family.inputs(settings_in(spec))
    return (Given(name="", shape=(1, *input_of(family, spec))),) if family.task in PICTURE_TASKS else ()


def confirm_all(spec: ArchitectureSpec) -> ArchitectureSpec:
    """The same with every assumption written as an option: what confirming all of them gives."""
    options = dict(spec.options) | {one.name: one.value for one in spec.assumed}
    return replace(spec, options=tuple(sorted(options.items())), assumed=())


def _read(key: str, text: str) -> OptionValue:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    pieces = text.split(",")
    if all(piece.isascii() and piece.isdigit() and len(piece) < 10 and int(piece) < _MOST for piece in pieces):
        numbers = tuple(map(int, pieces))
        return numbers if len(numbers) > 1 else numbers[0]
    try:
        value = float(text)
        if 0 <= value < _MOST:
            return value
    except ValueError:
        if text.replace("_", "").replace("-", "").isalnum():
            return text
    raise UsageError(f'{key} cannot be "{text}".', hint="Settings are numbers, words, or numbers joined by commas.")


def _shown(value: OptionValue | None) -> str:
    if value is None:
        return "?"
    if isinstance(value, tuple):
        return "-".join(map(str, value))
    return f"{value:,}" if type(value) is int and value >= 10_000 else str(value)


def _whole(value: OptionValue | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
