"""One checkpoint held against another: pairs, one streamed pass over each, and what it comes to. No torch.

Memory does not grow with the files: a tile of each tensor is held. Where both files are known to be the same by their
sha256, nothing is read.
"""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.compare.align import Operand, Pairs, align, by_order, candidates, describe
from inspector.compare.by_bytes import compare_by_bytes
from inspector.compare.held import Held, piece_chunks
from inspector.compare.missing import what_is_missing
from inspector.compare.modules import modules_of, total_of
from inspector.compare.others import other_changes
from inspector.compare.report import Diff, Relation, Side, TensorDiff, Way
from inspector.compare.sentences import say
from inspector.compare.verdicts import find_verdicts
from inspector.errors import InspectorError
from inspector.params.count import count_parameters
from inspector.progress import Progress, silent
from inspector.units import counted
from inspector.weights.meter import Meter


class Pairwise(Protocol):
    """Who compares pairs of tensors as `compare_pair` does, wherever."""

    def __call__(self, pairs: Sequence[tuple[Held, Held]], meter: Meter) -> Sequence[TensorDiff]:
        """The answer for each pair, in their order."""
        ...


def compare_checkpoints(
    a: Checkpoint,
    b: Checkpoint,
    *,
    a_state: StateDict | None = None,
    b_state: StateDict | None = None,
    relatives: bool = True,
    everything: bool = False,
    numbers: bool = True,
    workers: int = 1,
    pairwise: Pairwise | None = None,
    progress: Progress = silent,
) -> Diff:
    """What the second checkpoint is to the first.

    a_state, b_state: which state dict of each; the likeliest weights where none is given, all tensors of a file that
    has none. relatives: whether it is also asked what the two have to do with each other, which reads what changed once
    more. everything: whether the tensors of other state dicts (an optimizer's) are compared too, byte by byte.
    numbers: whether it is measured how far numbers moved; without, tensors are held against each other by bytes alone.
    workers: threads that read side by side; the report is the same to the last bit. pairwise: who holds pairs against
    each other in their place. progress: in bytes of both files. What cannot be read is in the report; raises only what
    progress and pairwise raise.
    """
    began = time.perf_counter()
    one, two = _operand(a, a_state), _operand(b, b_state)
    nbytes = sum(tensor.nbytes for side in (one, two) for tensor in side.tensors)
    if numbers:
        from inspector.weights import kernel

        kernel.expect(nbytes)
    meter = Meter(progress, nbytes)
    pairs = align(one, two)
    if not _known_same(one, two):
        _by_bytes(pairs, meter)
    by_order(pairs)
    lacks = (tuple(what_is_missing(a, "first")), tuple(what_is_missing(b, "second")))
    pairwise = pairwise if numbers else compare_by_bytes
    tensors = _unless_missing(_compared(pairs, meter, workers, pairwise), *lacks)
    read_nbytes = meter.done
    meter.end()
    # What was read side by side has ended the first one.
    rest = Meter(progress, sum(tensor.nbytes for side in (a, b) for tensor in side.tensors) - nbytes)
    others = other_changes(one, two, pairs.of, rest if everything else None)
    read_nbytes += rest.done
    found = Diff(
        a=_side(one),
        b=_side(two),
        alignment=describe(pairs),
        tensors=tensors,
        modules=modules_of(tensors),
        totals=total_of(tensors),
        others=others,
        skipped=tuple(_skipped(one, two, everything)),
        incomplete=(*lacks[0], *lacks[1]),
        read_nbytes=read_nbytes,
    )
    if not found.incomplete:
        found = _with_verdicts(found, one, two, relatives=relatives, numbers=numbers)
    return replace(found, says=say(found), seconds=time.perf_counter() - began)


def _with_verdicts(found: Diff, one: Operand, two: Operand, *, relatives: bool, numbers: bool) -> Diff:
    if numbers and any(tensor.relation is Relation.CHANGED for tensor in found.tensors):
        from inspector.compare.fixed import find_evidence

        found = replace(found, evidence=find_evidence(found.tensors, one.checkpoint, one.by_name))
    verdicts, failed = find_verdicts(found)
    found = replace(found, verdicts=verdicts, skipped=(*found.skipped, *failed))
    if not (numbers and relatives):
        return found
    from inspector.compare.relatives import find_relatives

    related, left, failed = find_relatives(found, one.checkpoint, two.checkpoint, one.by_name, two.by_name)
    skipped = (*found.skipped, *failed, *_not_examined(left))
    return replace(found, verdicts=(*found.verdicts, *related), skipped=skipped)


def _not_examined(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        return ()
    shown = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
    return (f"Where {counted(len(names), 'tensor')} ({shown}) may come from: too large, or not finite.",)


def _operand(checkpoint: Checkpoint, state: StateDict | None) -> Operand:
    state = state or checkpoint.weights
    return Operand(checkpoint=checkpoint, state=state, tensors=state.tensors if state else checkpoint.tensors)


def _side(operand: Operand) -> Side:
    checkpoint, state = operand.checkpoint, operand.state
    return Side(
        name=checkpoint.origin.name,
        format_says=checkpoint.format_says,
        file_nbytes=checkpoint.origin.nbytes,
        sha256=checkpoint.origin.sha256,
        state=state.label if state else "",
        path=state.path if state else (),
        role=state.role if state else None,
        why=state.why if state else "the file has no state dict: all its tensors",
        choices=tuple(other.label for other in checkpoint.state_dicts),
        tensors=len(operand.tensors),
        parameters=(
            count_parameters(checkpoint, state).modules[0].parameters
            if state is not None
            else sum(tensor.numel for tensor in operand.tensors)
        ),
        nbytes=sum(tensor.nbytes for tensor in operand.tensors),
    )


def _known_same(one: Operand, two: Operand) -> bool:
    """Whether the digests of both files were known beforehand and are equal, and the same part of them is compared."""
    a, b = one.checkpoint.origin, two.checkpoint.origin
    paths = [side.state.path if side.state else None for side in (one, two)]
    return a.sha256 is not None and (a.sha256, a.nbytes) == (b.sha256, b.nbytes) and paths[0] == paths[1]


def _compared(pairs: Pairs, meter: Meter, workers: int, pairwise: Pairwise | None) -> tuple[TensorDiff, ...]:
    a, b = pairs.a.checkpoint, pairs.b.checkpoint
    known = _known_same(pairs.a, pairs.b)

    def one(pair: tuple[Held, Held]) -> TensorDiff:
        if known:
            return TensorDiff(a=pair[0].side, b=pair[1].side, relation=Relation.SAME, by_digest=True)
        from inspector.compare.pair import compare_pair

        meter.begin(pair[0].tensor.name)
        return compare_pair(*pair, meter)

    held = [(Held(a, x), Held(b, y)) for x, y in pairs.pairs()]
    # Tensors that show the same elements, tied weights above all, are compared once.
    first: dict[tuple[object, ...], tuple[Held, Held]] = {}
    for pair in held:
        first.setdefault((pair[0].place, pair[1].place), pair)
    asked = tuple(first.values())
    given = pairwise(asked, meter) if pairwise is not None and not known else meter.over(one, asked, workers)
    answers = dict(zip(first, given, strict=True))
    found = {x.tensor.name: replace(answers[(x.place, y.place)], a=x.side, b=y.side) for x, y in held}
    removed = {t.name: TensorDiff(a=Held(a, t).side, b=None, relation=Relation.REMOVED) for t in pairs.left_a}
    added = [TensorDiff(a=None, b=Held(b, t).side, relation=Relation.ADDED) for t in pairs.left_b]
    return (*(found.get(t.name) or removed[t.name] for t in pairs.a.tensors), *added)


def _unless_missing(
    tensors: tuple[TensorDiff, ...], of_a: tuple[str, ...], of_b: tuple[str, ...]
) -> tuple[TensorDiff, ...]:
    """Of a file that is not whole nobody knows what it does not hold."""
    unknown = {relation for relation, lacks in ((Relation.ADDED, of_a), (Relation.REMOVED, of_b)) if lacks}
    why = "the file without it is not whole"
    return tuple(replace(t, relation=Relation.UNREAD, note=why) if t.relation in unknown else t for t in tensors)


def _by_bytes(pairs: Pairs, meter: Meter) -> None:
    """Pairs of what names leave over: tensors with the same bytes. Several with the same bytes go in their order."""
    found: list[tuple[str, str]] = []
    for ones, twos in candidates(pairs):
        mine, theirs = _digests(pairs.a, ones, meter), _digests(pairs.b, twos, meter)
        for digest, names in mine.items():
            others = theirs.get(digest, [])
            # As many here as there: whichever goes to whichever, the numbers are the same.
            if digest and len(names) == len(others):
                found += zip(names, others, strict=True)
    pairs.add(found, Way.BYTES)


def _digests(side: Operand, tensors: list[TensorInfo], meter: Meter) -> dict[bytes, list[str]]:
    digests: dict[bytes, list[str]] = defaultdict(list)
    for tensor in tensors:
        digests[_digest(Held(side.checkpoint, tensor), meter)].append(tensor.name)
    return digests


def _digest(held: Held, meter: Meter) -> bytes:
    """Of its bytes; empty for what cannot be read, or has none."""
    digest = hashlib.sha256()
    try:
        for piece in piece_chunks(held, meter):
            digest.update(piece)
    except (InspectorError, OSError, ValueError, MemoryError):
        return b""
    return digest.digest() if held.tensor.numel else b""


def _skipped(one: Operand, two: Operand, everything: bool) -> list[str]:
    found = []
    sides = ((one, "first"), (two, "second"))
    labels = [{s.label for s in side.checkpoint.state_dicts if s is not side.state} for side, _ in sides]
    read = labels[0] & labels[1] if everything else set()
    for side, word in sides:
        rest = [s for s in side.checkpoint.state_dicts if s is not side.state and s.label not in read]
        tensors = sum(len(state.tensors) for state in rest)
        if tensors:
            names = ", ".join(state.label for state in rest[:4]) + (" ..." if len(rest) > 4 else "")
            found.append(f"{counted(tensors, 'tensor')} of the {word} file in other state dicts ({names}).")
        found += [f"{side.checkpoint.origin.name}: {text}" for text in side.checkpoint.skipped]
    return found
