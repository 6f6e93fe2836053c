"""Weights that are one matrix, or were: stored once, stored twice, and ties that were lost.

A language model may use its embedding as output layer (Press and Wolf 2016, 1608.05859). A pickle keeps such a pair as
two names of one storage; safetensors drops a name. Equal constants are no tie.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from inspector.checkpoint.nested import EMA_NAME
from inspector.checkpoint.types import TensorInfo
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.equality import Budget, are_equal, ends_shared, likely_copies, may_equal, same_place
from inspector.health.phrases import listed, shown
from inspector.health.subject import Examined, Subject
from inspector.keys.rules.tied_weights import EMBEDDINGS, HEADS
from inspector.units import counted, human_bytes

STORED_ONCE = FindingKind("tied-weights-stored-once", Severity.INFO, "Several names show one storage")
STORED_TWICE = FindingKind("equal-weights-stored-twice", Severity.INFO, "Equal tensors are stored more than once")
TIE_LOST = FindingKind(
    "weight-tie-lost",
    Severity.NOTICE,
    "An output layer differs from the embedding it is tied to",
    also=(Severity.WARNING,),
)
_REMEDIES = {
    STORED_ONCE: "Tied on purpose, as a rule. safetensors.torch.save_file refuses shared storages: use save_model, or "
    "leave one name out and tie again after loading.",
    STORED_TWICE: "Tied weights that a writer made two of, a copy that has not been trained yet (a target network, "
    "upcycled experts), or layers copied on purpose. If they are tied, store one.",
}
# Of one dimension, or shorter, copies are chance or habit.
_FEWEST = 256
_TIED = "tie_word_embeddings"


def _find(subject: Subject) -> Iterator[Finding]:
    budget = Budget(subject.thresholds.compared_nbytes)
    yield from _once(subject)
    yield from _twice(subject, budget)
    yield from _lost(subject, budget)
    subject.leave_out(budget.why, budget.left_out)


def _once(subject: Subject) -> Iterator[Finding]:
    places: dict[tuple[object, ...], list[TensorInfo]] = defaultdict(list)
    for one in subject.tensors:
        t = one.tensor
        if t.storage_id is not None and t.numel > 1:
            places[t.storage_id, t.offset, t.shape, t.stride].append(t)
    groups = [group for group in places.values() if len(group) > 1]
    has = "has" if len(groups) == 1 else "have"
    yield from _equal(STORED_ONCE, groups, f"{has} several names and one storage ({{}} saved)", "nbytes saved")


def _twice(subject: Subject, budget: Budget) -> Iterator[Finding]:
    columns = subject.columns
    alike = subject.those(ends_shared(columns, (columns.numel >= _FEWEST) & (columns.ndim > 1)))
    measured = [(one.tensor, t) for one, t in alike if not EMA_NAME.search(one.name)]
    groups = [
        [first, *equal]
        for first, *others in likely_copies(measured)
        if (
            equal := [
                other
                for other in others
                if not same_place(first, other) and are_equal(subject.checkpoint, first, other, budget)
            ]
        )
    ]
    yield from _equal(STORED_TWICE, groups, "stored more than once, bit for bit ({} more)", "nbytes extra")


def _equal(kind: FindingKind, groups: list[list[TensorInfo]], says: str, label: str) -> Iterator[Finding]:
    """says: what they are, with a place for the bytes of all but the first of each group."""
    if groups:
        names = [tensor.name for group in groups for tensor in group]
        nbytes = sum(group[0].nbytes * (len(group) - 1) for group in groups)
        pairs = listed([" = ".join(shown(tensor.name) for tensor in group[:3]) for group in groups])
        yield kind.found(
            f"{counted(len(groups), 'tensor')} {says.format(human_bytes(nbytes))}: {pairs}.",
            subjects=names,
            evidence=(("tensors", len(groups)), ("names", len(names)), (label, nbytes)),
            remedy=_REMEDIES[kind],
        )


def _lost(subject: Subject, budget: Budget) -> Iterator[Finding]:
    """One embedding and one output layer by their names, of one shape and different."""
    weights = [one for one in subject.called(lambda last: last == "weight") if len(one.tensor.shape) == 2]
    lasts = [one.module.rpartition(".")[2] for one in weights]
    embeddings = [one for one, last in zip(weights, lasts, strict=True) if last in EMBEDDINGS]
    if len(embeddings) != 1:
        return
    heads = [one for one, last in zip(weights, lasts, strict=True) if last in HEADS and one is not embeddings[0]]
    if len(heads) != 1:
        return
    embedding, head = embeddings[0], heads[0]
    if embedding.tensor.shape != head.tensor.shape or same_place(embedding.tensor, head.tensor):
        return
    a, b = embedding.statistics, head.statistics
    if a is None or b is None:
        return
    # Equal, or too large to be told apart.
    if may_equal(a, b) and are_equal(subject.checkpoint, embedding.tensor, head.tensor, budget) is not False:
        return
    said = subject.setting(_TIED) == "true"
    if subject.setting(_TIED) == "false" or (not said and not _is_gpt2(subject)):
        return
    rows = _equal_rows(subject, embedding, head)
    part = "" if rows is None else f"; {rows:,} of {embedding.tensor.shape[0]:,} rows are equal"
    why = f"{_TIED} is true beside it" if said else "in GPT-2 the two are one matrix"
    yield TIE_LOST.found(
        f"{head.name} differs from {embedding.name}, and {why}{part}.",
        severity=Severity.WARNING if said else Severity.NOTICE,
        subjects=(embedding.name, head.name),
        evidence=(
            (embedding.name, a.rms),
            (head.name, b.rms),
            *((("equal rows", rows), ("rows", embedding.tensor.shape[0])) if rows is not None else ()),
        ),
        remedy="A loader that ties them keeps the embedding and drops the output layer without a word. If both were "
        "trained apart, set tie_word_embeddings to false; else copy the embedding over the output layer.",
    )


def _is_gpt2(subject: Subject) -> bool:
    """GPT-2's fused projection and no bias of the output layer, which GPT-J and CodeGen have."""
    names = subject.by_name
    return any(name.endswith("attn.c_attn.weight") for name in names) and "lm_head.bias" not in names


def _equal_rows(subject: Subject, embedding: Examined, head: Examined) -> int | None:
    a, b = subject.array(embedding), subject.array(head)
    return None if a is None or b is None else int((a == b).all(axis=1).sum())


CHECK = Check(kinds=(STORED_ONCE, STORED_TWICE, TIE_LOST), find=_find)
