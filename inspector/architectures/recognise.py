"""What is this state dict? torchvision's and timm's architectures by names and shapes, with the evidence.

An inverted index over (name, shape) finds the nearest layouts; each is then compared in full, with the class count,
input channels and picture size that the file shows. Under wrappers, several hypotheses about what to take off
compete by score. The score is the Jaccard similarity of the name sets, counting only names whose shapes fit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from inspector.architectures.by_shapes import alike
from inspector.architectures.claims import stated_architectures, stated_settings
from inspector.architectures.index import LIBRARIES, Index, load_index
from inspector.architectures.match import (
    Fit,
    compare,
    computing_twins,
    describe,
    either,
    fit,
    is_another,
    is_near,
    is_worth_naming,
    with_sentence,
)
from inspector.architectures.named_otherwise import check_claims
from inspector.architectures.official import check_name, find_official
from inspector.architectures.once import once_per_network
from inspector.architectures.parts import name_part
from inspector.architectures.structure.types import Structure
from inspector.architectures.types import ArchitectureSpec, Candidate, Likeness, OfficialFile, Recognition
from inspector.architectures.wrappers import View, views
from inspector.checkpoint.types import Checkpoint, Shape, StateDict, StateRole
from inspector.findings import Finding, FindingKind, Severity
from inspector.gc_pause import without_collecting
from inspector.kept_with import KeptWith
from inspector.units import counted, human_share

ARCHITECTURE_TWINS = FindingKind(
    "architecture-twins", Severity.INFO, "Several architectures have these names and shapes"
)

MOST_CANDIDATES = 5
LONGEST_NAME = 512  # characters
COMPARED = 24  # layouts per hypothesis whose score is computed
MOST_COMPARED = 6  # classes of twins that are compared in full

# (id of the state dict, whether described) -> the answer.
_KEPT: KeptWith[Checkpoint, dict[tuple[int, bool], Recognition]] = KeptWith(lambda _: {})


@without_collecting()
def recognise(
    checkpoint: Checkpoint, state: StateDict | None = None, *, index: Index | None = None, describe: bool = True
) -> Recognition:
    """What a state dict of the file is; the one meant as the weights when none is named.

    describe: whether its structure is told where no architecture fits exactly, which is most of the time that it takes.
    Never raises for strange content: "none of the known architectures" is an answer. One checkpoint is asked about by
    several reports, so an answer is kept for as long as the checkpoint lives.
    """
    state = state or checkpoint.weights
    if state is None or not state.tensors:
        return _recognise(checkpoint, state, index)
    mine = index is None and any(state is one for one in checkpoint.state_dicts)
    kept = _KEPT.of(checkpoint) if mine else {}
    found = kept.get((id(state), describe))
    if found is None:
        found = kept.get((id(state), False)) or _recognise(checkpoint, state, index)
        kept[id(state), False] = found
        if describe and _is_unknown(found.candidates, found.official) and not _is_rewritten(checkpoint):
            found = replace(found, structure=_structure(state, checkpoint))
        kept[id(state), describe] = found
    return found


def _recognise(checkpoint: Checkpoint, state: StateDict | None, index: Index | None) -> Recognition:
    """The answer without the structure."""
    if state is None or not state.tensors:
        return Recognition(
            state_dict=(),
            candidates=(),
            official=None,
            findings=check_name(checkpoint.origin),
            says="There is no state dict in the file, so there is no architecture to recognise.",
        )
    shapes = {tensor.name: tensor.shape for tensor in state.tensors}
    index = index or load_index()
    stated = stated_architectures(checkpoint, index)
    ranked = [_with_claim(candidate, stated) for candidate in _rank(shapes, index, tuple(stated))]
    official = find_official(checkpoint.origin, [name for c in ranked for name in _builders(c)])
    if official is None and not (ranked and ranked[0].exact):
        # Imported where something is left to find: the templates of all families cost time to load.
        from inspector.architectures.families.ranking import with_families

        ranked = with_families(ranked, shapes, stated_settings(checkpoint))
    if official is not None:
        ranked = _official_first(ranked, official, index)
    named = _worth_showing(ranked)
    otherwise = _otherwise(named[0].spec, stated_settings(checkpoint)) if named else ()
    likely = () if named or official is not None else tuple(_alike(shapes, index))
    misnamed = check_claims(checkpoint, state, named[0], index) if named else ()
    return Recognition(
        state_dict=state.path,
        candidates=named,
        official=official,
        findings=(
            *check_name(checkpoint.origin),
            *misnamed,
            *_twin_findings(named, official, stated, index),
            *otherwise,
        ),
        says=_answer(named, ranked, official) if not likely else _by_shapes(likely),
        part=name_part(shapes),
        alike=likely,
    )


def _is_unknown(named: Sequence[Candidate], official: OfficialFile | None) -> bool:
    """Whether nothing fits exactly: what is near a candidate is described as well, since that may be chance."""
    return official is None and not (named and named[0].exact)


def _is_rewritten(checkpoint: Checkpoint) -> bool:
    """Whether an exporter folded, transposed and renamed weights, so that names and shapes say little."""
    return checkpoint.format == "onnx"


def _structure(state: StateDict, checkpoint: Checkpoint) -> Structure:
    # Imported where nothing else is said.
    from inspector.architectures.structure.describe import describe_structure

    return describe_structure(state, [one for one in checkpoint.state_dicts if one.role is StateRole.WEIGHTS])


def rank(shapes: dict[str, Shape], index: Index, stated: Collection[str] = ()) -> list[Candidate]:
    """The nearest architectures, best first; twins and variants of one builder joined.

    stated: labels that something beside the names and shapes says; they win among equals.
    """
    # Names of hostile length would cost quadratic time; no module path is that long.
    short = {name: shape for name, shape in shapes.items() if len(name) <= LONGEST_NAME}
    long = tuple(name for name in shapes if name not in short)
    fits = [
        (fit(entry, view, count), place)
        for view in views(short, long, index, index.segments)
        for number, count in _retrieve(view, index)
        for place, entry in enumerate(index.of_layout[number])
    ]
    fits.sort(key=lambda item: (_order(item[0], stated), item[1]))
    groups: dict[tuple[object, ...], list[Fit]] = {}
    seen = set()
    for one, _ in fits:
        if one.entry.label in seen:
            continue  # another variant or another prefix of the same builder
        seen.add(one.entry.label)
        key = one.group
        if key in groups or len(groups) < MOST_COMPARED:
            groups.setdefault(key, []).append(one)
    # Listing names costs time with the length of the file, so only what can be shown is compared in full.
    return [
        with_sentence(replace(compare(best.entry, best.view), twins=_labels(best, twins)), best.entry)
        for best, *twins in groups.values()
    ]


_rank = once_per_network(rank)
_alike = once_per_network(alike)


def _labels(best: Fit, twins: Sequence[Fit]) -> tuple[str, ...]:
    """The twins' labels. The same network under the name of another picture size is none where the size is usual."""
    usual = not _is_resized(best)
    return tuple(twin.entry.label for twin in twins if not (usual and _is_resized(twin)))


def _is_resized(one: Fit) -> bool:
    return "image_size" in dict(one.spec.options)


def _retrieve(view: View, index: Index) -> list[tuple[int, int]]:
    """(layout, pairs in common) of the layouts with the most (name, shape) in common, by Jaccard similarity."""
    shared = index.shared(view.shapes)
    sizes, weighty = index.sizes, len(view.shapes) - len(view.counters)

    def rough(number: int) -> float:
        return shared[number] / (sizes[number] + weighty - shared[number])

    return [(number, shared[number]) for number in sorted(shared, key=lambda n: (-rough(n), n))[:COMPARED]]


def _order(one: Fit, stated: Collection[str]) -> tuple[object, ...]:
    """Best first: score, counters, what is stated, torchvision, the plainer builder and variant, shorter wrapper."""
    entry = one.entry
    return (
        -one.score,
        one.counters_off,
        entry.label not in stated,
        entry.name.startswith("quantized_"),
        LIBRARIES.index(entry.library),
        entry.needs_classes,
        _is_resized(one),
        one.spec.num_classes is not None,
        len(entry.options),
        len(one.view.wrapper),
        len(entry.name),
        entry.layout.number,
    )


def _worth_showing(ranked: Sequence[Candidate]) -> tuple[Candidate, ...]:
    named = [candidate for candidate in ranked if is_worth_naming(candidate)]
    if not named:
        return ()
    # Beside an exact match only what is nearly the same is of interest.
    bar = 0.9 if named[0].exact else 0.6 * named[0].score
    return tuple([named[0], *(c for c in named[1:] if c.score >= bar)][:MOST_CANDIDATES])


def _official_first(ranked: list[Candidate], official: OfficialFile, index: Index) -> list[Candidate]:
    """The digest decides between twins, and knows settings that names and shapes do not show."""
    label = f"{official.spec.library}/{official.spec.name}"
    entry = index.of(official.spec)
    result: list[Candidate] = []
    for candidate in ranked:
        own = f"{candidate.spec.library}/{candidate.spec.name}"
        if entry is not None and label in (own, *candidate.twins):
            others = tuple(twin for twin in (own, *candidate.twins) if twin != label)
            result.insert(0, with_sentence(replace(candidate, spec=official.spec, twins=others), entry))
        else:
            result.append(candidate)
    return result


def _by_shapes(likely: Sequence[Likeness]) -> str:
    """The answer where names say nothing and shapes do."""
    first = likely[0]
    text = "By its names this is not one of torchvision's or timm's architectures. By shapes alone it could be "
    text += either([first.label, *first.twins])
    order = "in the same order" if first.order == 1 else f"the order {human_share(first.order)} alike"
    text += f": {first.fitting:,} of its {counted(first.tensors, 'tensor')} have a counterpart of that shape, {order}."
    return f"{text} Name it as the target to compare."


def _bare(spec: ArchitectureSpec) -> ArchitectureSpec:
    """The architecture without what the file shows of its settings."""
    return ArchitectureSpec(library=spec.library, name=spec.name)


def _builders(candidate: Candidate) -> tuple[str, ...]:
    """torchvision's names among the candidate's builder and its twins."""
    labels = (f"{candidate.spec.library}/{candidate.spec.name}", *candidate.twins)
    return tuple(label.partition("/")[2] for label in labels if label.startswith("torchvision/"))


def _with_claim(candidate: Candidate, stated: Mapping[str, str]) -> Candidate:
    """Where twins fit equally and something names one of them, that is said."""
    where = stated.get(f"{candidate.spec.library}/{candidate.spec.name}")
    if where is None or not computing_twins(candidate):
        return candidate
    return replace(candidate, says=f"{candidate.says} It is named in {where}.")


def _twin_findings(
    named: Sequence[Candidate], official: OfficialFile | None, stated: Mapping[str, str], index: Index
) -> tuple[Finding, ...]:
    if not named or official is not None:
        return ()
    best = named[0]
    if f"{best.spec.library}/{best.spec.name}" in stated:
        return ()
    names = computing_twins(best)
    if not names or is_another(best, index.of(best.spec)):
        return ()
    return (
        ARCHITECTURE_TWINS.found(
            subjects=(best.spec.name, *names),
            says=f"{best.spec.name} has the same names and shapes as {either(names)}, so the file cannot tell which of "
            "them it was. They may differ in what no weights file holds: strides, padding, pooling, activations.",
            evidence=(("twins", len(names)),),
        ),
    )


def _otherwise(spec: ArchitectureSpec, stated: Mapping[str, tuple[str, str]]) -> tuple[Finding, ...]:
    """What stands beside a family's file and cannot be meant for it."""
    if not stated:
        return ()
    from inspector.architectures.families import find_family
    from inspector.architectures.families.contradictions import contradiction_findings
    from inspector.architectures.families.specs import settings_in

    family = find_family(spec.library, spec.name)
    return contradiction_findings(family, settings_in(spec), stated) if family is not None else ()


def _answer(named: Sequence[Candidate], ranked: Sequence[Candidate], official: OfficialFile | None) -> str:
    if official is not None:
        return f"This is {official.name}, published by torchvision as {official.file_name}: {describe(official.spec)}."
    if named:
        return named[0].says
    near = next((candidate for candidate in ranked if is_near(candidate)), None)
    text = "This is not one of torchvision's or timm's architectures, nor of the families known beside them"
    if near is None:
        return f"{text}."
    total = len(near.matched) + len(near.missing) + len(near.reshaped)
    return f"{text}; the nearest is {describe(_bare(near.spec))}, of whose {total:,} tensors {len(near.matched):,} fit."
