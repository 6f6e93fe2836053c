"""What a plan does, asks and lacks, and what about its file is no matter of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from inspector.checkpoint.dtypes import find_dtype
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.keys.checks.entry import MOST_SUBJECTS, Context
from inspector.keys.optimizer.map import map_optimizers
from inspector.keys.report import Cost
from inspector.keys.rules import RULES
from inspector.keys.sentences import names_only, say_odd_keys, say_others
from inspector.units import counted

NOT_TENSORS = FindingKind("not-tensors", Severity.NOTICE, "Values that are no tensors among the weights")
KEYS_NOT_TEXT = FindingKind("keys-not-text", Severity.NOTICE, "Keys that are no text among the weights")
AMBIGUOUS = FindingKind("ambiguous", Severity.ERROR, "A question that the file leaves open")
MISSING_TENSORS = FindingKind(
    "missing-tensors", Severity.ERROR, "Tensors that the file does not have", also=(Severity.WARNING,)
)
WRAPPER_DICT = FindingKind("wrapper-dict", Severity.INFO, "Weights that lie below the top of the file")
SHAPES_NOT_CHECKED = FindingKind("shapes-not-checked", Severity.NOTICE, "A target without shapes")
DTYPE_DIFFERS = FindingKind("dtype-differs", Severity.NOTICE, "Another floating-point type than the target's")
OPTIMIZER_STATE = FindingKind("optimizer-state", Severity.INFO, "An optimizer's state beside the weights")


def _uses(context: Context) -> Iterator[Finding]:
    plan = context.plan
    for use in plan.rules if plan is not None else ():
        steps = [s for s in plan.steps if s.rule == use.id or use.id in s.also] if plan is not None else []
        start = use.says[:1].upper() + use.says[1:]
        cost = "lossy" if use.cost is Cost.LOSSY else "lossless"
        yield context.draft.rules[use.id].kind.found(
            f"{start}: {counted(use.count, 'tensor')}, {cost}.",
            subjects=[s.source or s.target or "" for s in steps[:MOST_SUBJECTS]],
            evidence=(("tensors", use.count), *((before, after) for before, after in use.examples)),
            remedy="The repair plan does this." if use.accepted else f"Accept {use.id} to go on.",
        )


def _others(context: Context) -> Iterator[Finding]:
    if context.plan is not None and context.plan.others:
        yield NOT_TENSORS.found(
            f"Among the weights lie {say_others(context.plan)}; a strict load refuses them.",
            subjects=context.plan.others[:MOST_SUBJECTS],
            remedy="The repair plan leaves them out.",
        )


def _odd_keys(context: Context) -> Iterator[Finding]:
    if context.plan is not None and context.plan.odd_keys:
        yield KEYS_NOT_TEXT.found(
            f"Among the weights lie values under {say_odd_keys(context.plan)}; load_state_dict ends at the first.",
            subjects=context.plan.odd_keys[:MOST_SUBJECTS],
            remedy="The repair plan leaves them out.",
        )


def _questions(context: Context) -> Iterator[Finding]:
    for ambiguity in context.plan.ambiguities if context.plan is not None else ():
        options = " or ".join(f"{ambiguity.id}={option}" for option, _ in ambiguity.options)
        yield AMBIGUOUS.found(ambiguity.question, remedy=f"Choose {options}.", evidence=tuple(ambiguity.options))


def _missing(context: Context) -> Iterator[Finding]:
    plan = context.plan
    if plan is None or not plan.missing or plan.ambiguities:
        return
    says = f"{len(plan.missing):,} of {counted(len(context.target.tensors), 'tensor')} are not in the file"
    if plan.partial:
        yield MISSING_TENSORS.found(
            f"{says} and stay at the model's initial value.",
            severity=Severity.WARNING,
            subjects=plan.missing,
            remedy="Load with strict=False, as the written code does, and train them before use.",
        )
    else:
        yield MISSING_TENSORS.found(
            f"{says}.",
            subjects=plan.missing,
            remedy="The file holds a part of this network only, or belongs to another. A partial repair (--partial) "
            "leaves them at their initial value.",
        )


def _path(context: Context) -> Iterator[Finding]:
    if context.state.path:
        label = context.state.label
        yield WRAPPER_DICT.found(
            f"The weights lie under {label}, not at the top of the file: take them out before loading.",
            subjects=(label,),
        )


def _shapes(context: Context) -> Iterator[Finding]:
    if names_only(context.target):
        yield SHAPES_NOT_CHECKED.found("The target is a list of names without shapes: only names were compared.")


def _is_floating(dtype: str) -> bool:
    known = find_dtype(dtype)
    return known is not None and known.floating


def _dtypes(context: Context) -> Iterator[Finding]:
    wanted = {dtype for dtype in {t.dtype for t in context.target.tensors} if dtype and _is_floating(dtype)}
    every = Counter(tensor.dtype for tensor in context.state.tensors)
    stored = {dtype: count for dtype, count in every.items() if _is_floating(dtype) and dtype not in wanted}
    if wanted and stored:
        kinds = ", ".join(f"{counted(n, 'tensor')} as {name}" for name, n in stored.items())
        yield DTYPE_DIFFERS.found(
            f"The file stores {kinds}; the target computes in {', '.join(sorted(wanted))}: loading casts.",
            remedy="The written file keeps the stored type unless another is asked for.",
        )


def _optimizers(context: Context) -> Iterator[Finding]:
    """What the file's optimizers are, and whether their state could follow these weights."""
    for optimizer in map_optimizers(context.checkpoint, context.state):
        follows = "The repair writes it along if asked (--with-optimizer); the weights do not need it."
        yield OPTIMIZER_STATE.found(
            optimizer.says, subjects=(optimizer.label,), remedy="" if optimizer.refusal else follows
        )


CHECKS = (
    Check(kinds=tuple(rule.kind for rule in RULES), find=_uses),
    Check(kinds=(NOT_TENSORS,), find=_others),
    Check(kinds=(KEYS_NOT_TEXT,), find=_odd_keys),
    Check(kinds=(AMBIGUOUS,), find=_questions),
    Check(kinds=(MISSING_TENSORS,), find=_missing),
    Check(kinds=(WRAPPER_DICT,), find=_path),
    Check(kinds=(SHAPES_NOT_CHECKED,), find=_shapes),
    Check(kinds=(DTYPE_DIFFERS,), find=_dtypes),
)
OPTIMIZERS = Check(kinds=(OPTIMIZER_STATE,), find=_optimizers)
