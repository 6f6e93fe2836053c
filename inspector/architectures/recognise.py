"""What is this state dict? torchvision's architectures by names and shapes, with the evidence.

An inverted index over (name, shape) finds the nearest entries; each is then compared in full, with the class count,
input channels and picture size that the file shows. Under wrappers, several hypotheses about what to take off
compete by score. The score is the Jaccard similarity of the name sets, counting only names whose shapes fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from inspector.architectures.index import Entry, Index, Shape, is_bookkeeping, load_index
from inspector.architectures.match import (
    bookkeeping_off,
    compare,
    computing_twins,
    describe,
    is_near,
    is_worth_naming,
    shapes_for,
    similarity,
    with_sentence,
)
from inspector.architectures.official import check_name, find_official
from inspector.architectures.types import Candidate, OfficialFile, Recognition
from inspector.architectures.wrappers import View, views
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.findings import Finding, Severity

MOST_CANDIDATES = 5
LONGEST_NAME = 512  # characters
COMPARED = 16  # entries per hypothesis that are compared in full; twins and variants take several places


def recognise(checkpoint: Checkpoint, state: StateDict | None = None, *, index: Index | None = None) -> Recognition:
    """What a state dict of the file is; the one meant as the weights when none is named.

    Never raises for strange content: "none of torchvision's architectures" is an answer.
    """
    state = state or checkpoint.weights
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
    ranked = rank(shapes, index)
    official = find_official(checkpoint.origin, [name for c in ranked for name in _builders(c)])
    if official is not None:
        ranked = _official_first(ranked, official, index)
    named = _worth_showing(ranked)
    return Recognition(
        state_dict=state.path,
        candidates=named,
        official=official,
        findings=(*check_name(checkpoint.origin), *_twin_findings(named, official)),
        says=_answer(named, ranked, official),
    )


def rank(shapes: dict[str, Shape], index: Index) -> list[Candidate]:
    """Every architecture with something in common, best first; twins and variants of one builder joined."""
    # Names of hostile length would cost quadratic time; no module path is that long.
    short = {name: shape for name, shape in shapes.items() if len(name) <= LONGEST_NAME}
    long = tuple(name for name in shapes if name not in short)
    nearest = [
        (similarity(index.entries[number], view), number, view)
        for view in views(short, long, index.postings, index.segments)
        for number in _retrieve(view, index)
    ]
    # Listing names costs time with the length of the file, so only what can be shown is compared in full.
    nearest.sort(key=lambda item: (-item[0], item[1]))
    bar = nearest[: 2 * MOST_CANDIDATES][-1][0] if nearest else 0.0
    found = [(number, compare(index.entries[number], view)) for score, number, view in nearest if score >= bar]
    found.sort(key=lambda item: _order(item[1], index.entries[item[0]].options, item[0]))
    by_builder: dict[str, tuple[int, Candidate]] = {}
    for number, candidate in found:
        by_builder.setdefault(candidate.spec.name, (number, candidate))
    groups: dict[frozenset[tuple[str, Shape]], list[tuple[Entry, Candidate]]] = {}
    for number, candidate in by_builder.values():
        entry = index.entries[number]
        expected = zip(entry.tensors, shapes_for(entry, candidate.spec), strict=True)
        groups.setdefault(frozenset((t.name, shape) for t, shape in expected), []).append((entry, candidate))
    return [
        with_sentence(replace(best, twins=tuple(f"{t.spec.library}/{t.spec.name}" for _, t in twins)), entry)
        for (entry, best), *twins in groups.values()
    ]


def _retrieve(view: View, index: Index) -> list[int]:
    """Numbers of the entries with the most (name, shape) pairs in common, by Jaccard similarity."""
    shared: Counter[int] = Counter()
    weighty = 0
    for name, shape in view.shapes.items():
        if not is_bookkeeping(name):
            weighty += 1
            shared.update(index.postings.get((name, shape), ()))

    def rough(number: int) -> float:
        return shared[number] / (index.sizes[number] + weighty - shared[number])

    return sorted(shared, key=lambda number: (-rough(number), number))[:COMPARED]


def _order(candidate: Candidate, options: Sequence[object], number: int) -> tuple[float, int, int, int, int, int, int]:
    """Best first: score, then bookkeeping, the plainer builder, the plainer variant, the shorter wrapper and name."""
    return (
        -candidate.score,
        bookkeeping_off(candidate),
        int(candidate.spec.name.startswith("quantized_")),
        len(options),
        len(candidate.wrapper),
        len(candidate.spec.name),
        number,
    )


def _worth_showing(ranked: Sequence[Candidate]) -> tuple[Candidate, ...]:
    named = [candidate for candidate in ranked if is_worth_naming(candidate)]
    if not named:
        return ()
    # Beside an exact match only what is nearly the same is of interest.
    bar = 0.8 if named[0].exact else 0.6 * named[0].score
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


def _builders(candidate: Candidate) -> tuple[str, ...]:
    """The candidate's builder and those of its twins."""
    return (candidate.spec.name, *(twin.partition("/")[2] for twin in candidate.twins))


def _twin_findings(named: Sequence[Candidate], official: OfficialFile | None) -> tuple[Finding, ...]:
    if not named or official is not None:
        return ()
    best = named[0]
    names = computing_twins(best)
    if not names:
        return ()
    return (
        Finding(
            id="architecture-twins",
            severity=Severity.INFO,
            subjects=(best.spec.name, *names),
            says=f"{best.spec.name} and {', '.join(names)} have the same names and shapes, so the file cannot tell "
            "which of them it was.",
            evidence=(("twins", len(names)),),
        ),
    )


def _answer(named: Sequence[Candidate], ranked: Sequence[Candidate], official: OfficialFile | None) -> str:
    if official is not None:
        return f"This is {official.name}, published by torchvision as {official.file_name}: {describe(official.spec)}."
    if named:
        return named[0].says
    near = next((candidate for candidate in ranked if is_near(candidate)), None)
    text = "This is not one of torchvision's architectures"
    if near is None:
        return f"{text}."
    total = len(near.matched) + len(near.missing) + len(near.reshaped)
    return f"{text}; the nearest is {near.spec.name}, of whose {total:,} tensors {len(near.matched):,} fit."
