"""Layers that are as their initialiser made them, beside others that were trained.

Which layers says what happened: the last ones are a head that was never trained, those before them a backbone that was
never loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.freshness import Freshness, Proof, Standing
from inspector.health.layers import Layer, layers_of, trained_signs
from inspector.health.phrases import listed
from inspector.health.reached import Reached
from inspector.health.roles import Role
from inspector.health.subject import Subject
from inspector.units import counted, human_share

FRESH_FILE = FindingKind("fresh-weights", Severity.NOTICE, "The weights are freshly initialised")
HEAD = FindingKind("untrained-head", Severity.WARNING, "The last layers were never trained", also=(Severity.NOTICE,))
BACKBONE = FindingKind(
    "unloaded-backbone", Severity.WARNING, "All but the last layers were never trained", also=(Severity.NOTICE,)
)
UNCHANGED = FindingKind(
    "unchanged-layers", Severity.WARNING, "Layers are unchanged since initialisation", also=(Severity.NOTICE,)
)

# How output layers are called, by the first segment of the name or the last: for files that keep no order.
_HEADS = frozenset(
    {
        *("fc", "classifier", "head", "heads", "lm_head", "score", "qa_outputs", "logits", "output", "out", "cls"),
        *("pre_classifier", "prediction", "predictions", "proj_out", "linear", "fc_out", "output_layer", "last_linear"),
    }
)
# googlenet's aux1, inception's AuxLogits, aux_classifier of segmentation.
_AUXILIARY = re.compile(r"(^|[._])aux", re.IGNORECASE)
_HOW = {
    Proof.LATTICE: "Bit for bit they are numbers of torch's generator, which one step of an optimizer ends.",
    Proof.SCALED: "Up to a factor that all of a tensor share they are numbers of torch's generator, bit for bit: no "
    "gradient moved them. Weight decay alone, which scales all alike, would not show.",
    Proof.EDGE: "Their values end at the initialiser's bound, which one step of an optimizer usually blurs.",
    Proof.SPREAD: "Their mean, spread and shape are an initialiser's, which short training leaves as they are: this is "
    "a hint, no proof. Two files prove it: compare with an earlier one.",
}
_BUT = {Proof.SCALED: ", but for a common factor"}


def _find(subject: Subject) -> Iterator[Finding]:
    layers = layers_of(subject)
    fresh = [one for one in layers if one.standing in (Standing.FRESH, Standing.LIKELY)]
    moved = [one for one in layers if one.standing is Standing.MOVED]
    if not fresh:
        return
    signs = trained_signs(subject, layers)
    if not moved and not signs and not any(one.standing is Standing.UNSURE for one in layers):
        norms = any(True for _ in subject.measured(Role.NORM_SCALE, Role.NORM_SHIFT))
        still = "no scale or shift of a norm has moved" if norms else "nothing else in the file tells of training"
        yield _fresh_file(fresh, still)
        return
    if not moved:
        # Everything passes for fresh and the norms were trained: sure ones only are named.
        moved = [one for one in layers if one.standing is not Standing.FRESH]
        fresh = [one for one in fresh if one.standing is Standing.FRESH]
        if not fresh or not moved:
            return
    # Mean and spread outlast a training, so that they are believed only beside vectors that are as they began.
    fresh = [one for one in fresh if one.freshness.proof is not Proof.SPREAD or one.reached is Reached.AT_REST]
    if not fresh:
        return
    sure = [one for one in fresh if one.standing is Standing.FRESH]
    if sure and signs:
        fresh = sure
    elif signs and len(fresh) > len(moved):
        # Rounded to 16 bits, what was trained a little passes for fresh.
        return
    if not signs and _kind_of(subject, fresh, moved)[0] is not BACKBONE:
        yield _fresh_file(fresh, f"{counted(len(moved), 'other layer')} may have been initialised in another way")
        return
    yield _unlike(subject, fresh, moved, layers, signs=signs)


def _fresh_file(fresh: Sequence[Layer], and_what: str) -> Finding:
    numel = sum(one.numel for one in fresh)
    return FRESH_FILE.found(
        f"{counted(len(fresh), 'layer')} ({listed([one.name for one in fresh])}) "
        f"{'is' if len(fresh) == 1 else 'are'} as initialised"
        f"{_BUT.get(_weakest(fresh), '')}; {and_what}.",
        subjects=[one.name for one in fresh],
        evidence=(("layers", len(fresh)), ("elements", numel), *_evidence(fresh)),
        remedy=f"{_HOW[_weakest(fresh)]} Right for a file that training is to start from; nothing was learnt in it.",
    )


def _unlike(
    subject: Subject, fresh: list[Layer], moved: list[Layer], layers: Sequence[Layer], *, signs: int
) -> Finding:
    """fresh beside moved."""
    sure = signs > 0 and all(one.standing is Standing.FRESH for one in fresh)
    kind, why = _kind_of(subject, fresh, moved)
    alone = (kind is UNCHANGED and len(fresh) == 1) or all(_AUXILIARY.search(one.module) for one in fresh)
    share = len(fresh) / len(layers)
    return kind.found(
        f"{counted(len(fresh), 'layer')} of {len(layers):,} ({human_share(share)}: "
        f"{listed([one.name for one in fresh])}) {'is' if len(fresh) == 1 else 'are'} unchanged since "
        f"initialisation{_BUT.get(_weakest(fresh), '')}, while {counted(len(moved), 'other')} changed.",
        severity=Severity.WARNING if sure and not alone else Severity.NOTICE,
        subjects=[one.name for one in fresh],
        evidence=(
            *(("layers", len(fresh)), ("of", len(layers)), ("moved", len(moved))),
            *(("elements", sum(one.numel for one in fresh)), ("other signs of training", signs), *_evidence(fresh)),
        ),
        remedy=f"{_HOW[_weakest(fresh)]} {why}",
    )


def _kind_of(subject: Subject, fresh: list[Layer], moved: list[Layer]) -> tuple[FindingKind, str]:
    ordered = subject.state is None or subject.state.ordered
    at_the_end = min(one.place for one in fresh) > max(one.place for one in moved)
    at_the_start = max(one.place for one in fresh) < min(one.place for one in moved)
    if all(_AUXILIARY.search(one.module) for one in fresh):
        return UNCHANGED, "Auxiliary heads are run in training only, and not always: harmless where they were left out."
    if (ordered and at_the_end and len(fresh) <= len(moved)) or all(_is_head(one) for one in fresh):
        return HEAD, (
            "Train it before you use its answers: they are random. Harmless where it is replaced or left out, as when "
            "features are taken."
        )
    most = len(fresh) >= subject.thresholds.initial_body * (len(fresh) + len(moved)) and len(fresh) > 2
    if most and ((ordered and at_the_start) or all(_is_head(one) for one in moved)):
        return BACKBONE, (
            "Pretrained weights were probably not loaded before the head was trained (names that did not match, "
            "strict=False). Harmless where random features were meant."
        )
    harmless = "Harmless for auxiliary heads and parts that are not run, and for layers left random on purpose."
    if any(one.reached is Reached.TRAINED for one in fresh):
        return UNCHANGED, (
            f"Biases and norms beside them were trained: the weights were frozen, or were not loaded. {harmless}"
        )
    still = (
        "Biases and norms beside them have not moved either" if fresh[0].reached is Reached.AT_REST else "As it seems"
    )
    return UNCHANGED, (
        f"{still}: no gradient came there. They are not used in the forward, frozen, not given to the optimizer, or "
        f"were not loaded. {harmless}"
    )


def _is_head(layer: Layer) -> bool:
    segments = layer.module.split(".")
    return segments[0] in _HEADS or segments[-1] in _HEADS


def _weakest(fresh: Sequence[Layer]) -> Proof:
    order = list(Proof)
    return max((one.freshness.proof or Proof.SPREAD for one in fresh), key=order.index)


def _evidence(fresh: Sequence[Layer]) -> tuple[tuple[str, str | float], ...]:
    first: Freshness = fresh[0].freshness
    if first.initialiser is None:
        return ()
    of = first.initialiser
    return (
        ("proof", str(_weakest(fresh))),
        ("first layer's initialiser", f"{of.family}, {of.says}"),
        ("bound" if of.family == "uniform" else "standard deviation", of.scale),
    )


CHECK = Check(kinds=(FRESH_FILE, HEAD, BACKBONE, UNCHANGED), find=_find)
