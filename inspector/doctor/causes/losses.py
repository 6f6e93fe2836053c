"""Losses inside of forward: targets of another shape, type or numbering than the loss takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from inspector.doctor.causes.entry import Cause
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene
from inspector.units import counted, human_shape

_BY_CLASS = ("cross_entropy", "nll_loss", "nll_loss2d", "cross_entropy_loss", "nll_loss_nd")
_BY_VALUE = (
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
)  # fmt: skip
_BETWEEN = re.compile(r"all elements of (input|target) should be between 0 and 1")
_REFUSES = re.compile(r"\bnan\b|\binf\b|infinit|finite|probability tensor|converge|singular", re.IGNORECASE)
_OUTSIDE = re.compile(r"Target (-?\d+) is out of bounds")


def _pair(scene: Scene) -> tuple[Tensor, Tensor] | None:
    """(answers, targets) of the loss that failed."""
    args: tuple[Any, ...] = tuple(scene.recorder.function_args[0])
    named: Mapping[str, Any] = scene.recorder.function_args[1]
    answers = args[0] if args else named.get("input")
    targets = args[1] if len(args) > 1 else named.get("target")
    return (answers, targets) if isinstance(answers, Tensor) and isinstance(targets, Tensor) else None


def find_class_target(scene: Scene) -> Diagnosis | None:
    """Cross entropy: one whole number for each sample, or probabilities shaped like the answers."""
    pair = _pair(scene)
    if scene.recorder.function_name not in _BY_CLASS or pair is None:
        return None
    answers, targets = pair
    y = scene.variable_of(targets) or "y"
    shapes = f"answers of {human_shape(tuple(answers.shape))}, targets of {human_shape(tuple(targets.shape))}"
    outside = _OUTSIDE.search(scene.text)
    classes = answers.shape[1] if answers.dim() > 1 else answers.shape[0] if answers.dim() else 0
    if outside is not None:
        counted_from_one = int(outside[1]) == classes and not targets.is_meta and int(targets.min()) >= 1
        return Diagnosis(
            cause="target-class",
            says=f"The targets name class {outside[1]}, and the answers have {classes}: 0 to {classes - 1}.",
            fix="They seem to count from 1; classes count from 0."
            if counted_from_one
            else "Number the classes from 0, or make the last layer wider.",
            code=f"{y} = {y} - 1" if counted_from_one else "",
        )
    says = f"The loss does not take these targets: {shapes}, {str(targets.dtype).removeprefix('torch.')}."
    single = targets.dim() == answers.dim() and targets.dim() > 1 and targets.shape[1] == 1
    if single and classes != 1:
        return Diagnosis(
            cause="target-shape",
            says=says,
            fix="It takes one whole number for each sample: take out the dimension of 1.",
            code=f"{y} = {y}.squeeze(1)" + ("" if targets.dtype is torch.int64 else ".long()"),
        )
    if answers.shape == targets.shape and not targets.is_floating_point():
        return Diagnosis(
            cause="target-shape",
            says=says,
            fix="Targets shaped like the answers are probabilities, in floating point; a class is one whole number.",
            code=f"{y} = {y}.argmax(1)  # or {y}.float()",
        )
    if targets.is_floating_point() and targets.dim() == answers.dim() - 1:
        return Diagnosis(
            cause="target-type", says=says, fix="Numbers of classes are whole numbers.", code=f"{y} = {y}.long()"
        )
    rest = tuple(targets.shape[1:])
    if answers.dim() > 2 and targets.dim() == answers.dim() - 1 and tuple(answers.shape[1:-1]) == rest:
        return Diagnosis(
            cause="target-shape",
            says=says,
            fix="The classes stand last in the answers; the loss takes them second.",
            code=f"loss({scene.variable_of(answers) or 'answers'}.movedim(-1, 1), {y})",
        )
    if answers.dim() == 2 and targets.dim() > 1 and targets.numel() == answers.shape[0]:
        return Diagnosis(
            cause="target-shape",
            says=says,
            fix="The answers are flattened for the loss, one row for each position; flatten the targets as well.",
            code=f"{y} = {y}.flatten()",
        )
    if answers.dim() > 1 and targets.dim() and answers.shape[0] != targets.shape[0]:
        return _other_number(scene, answers, says)
    return None


def _other_number(scene: Scene, answers: Tensor, says: str) -> Diagnosis:
    """As many answers as targets: which of both is wrong is told by what the model was given."""
    given = next((t for t in scene.inputs if t.dim() > 1), None)
    kept = given is not None and given.shape[0] == answers.shape[0]
    return Diagnosis(
        cause="target-shape",
        says=says,
        fix="There are to be as many targets as answers."
        if kept
        else "There are to be as many answers as targets: look for the line that changes the number of samples.",
        sureness=Sureness.CERTAIN if kept else Sureness.LIKELY,
    )


def find_no_probabilities(scene: Scene) -> Diagnosis | None:
    """Binary cross entropy of what does not lie between 0 and 1."""
    match = _BETWEEN.search(scene.text)
    pair = _pair(scene)
    if match is None or pair is None:
        return None
    answers, targets = pair
    one = answers if match[1] == "input" else targets
    low, high = (float(v) for v in torch.aminmax(one.detach())) if one.numel() and not one.is_meta else (0.0, 0.0)
    end = scene.recorder.end_of(answers)
    if match[1] == "target":
        return Diagnosis(
            cause="loss-values",
            says=f"BCELoss takes targets from 0 to 1, and {scene.told(targets)} reaches from {low:.4g} to {high:.4g}.",
            fix="Are they classes counted from 1, or values of 0 to 255? Bring them to 0 to 1; for more than two "
            "classes CrossEntropyLoss.",
        )
    if low != low or high != high:
        return Diagnosis(
            cause="loss-values",
            says=f"BCELoss takes probabilities, and {scene.told(answers)} holds NaN.",
            fix="Look for the first NaN: in the input, or in a layer before.",
        )
    logits = end is not None and end.function == "linear"
    made = f" (line {end.line.line}: {end.line.text})" if end is not None and end.line is not None else ""
    what = f": a layer without activation made it{made}, these are logits" if logits else ""
    return Diagnosis(
        cause="loss-values",
        says=f"BCELoss takes probabilities from 0 to 1, and {scene.told(answers)} reaches from {low:.4g} to {high:.4g}"
        f"{what}.",
        fix="BCEWithLogitsLoss takes logits, and is the steadier one; or a sigmoid at the end.",
        code="nn.BCEWithLogitsLoss()" if logits else "",
        tried=_with_logits(scene) if logits else (),
        sureness=Sureness.CERTAIN if logits else Sureness.LIKELY,
    )


def find_not_finite(scene: Scene) -> Diagnosis | None:
    """A function that refuses NaN and infinities was given some."""
    if not _REFUSES.search(scene.text):
        return None
    for tensor in (*scene.function_tensors, *scene.operands):
        if tensor.is_meta or not tensor.is_floating_point() or bool(tensor.detach().isfinite().all()):
            continue
        nans = int(tensor.detach().isnan().sum())
        what = counted(nans, "NaN") if nans else "infinities"
        return Diagnosis(
            cause="values-not-finite",
            says=f"{scene.recorder.function_name or scene.operator} in {scene.path} takes finite numbers, and "
            f"{scene.told(tensor)} holds {what}.",
            fix="Look for the first NaN or infinity before it: a division by 0, log or sqrt of what is not positive.",
        )
    return None


def _with_logits(scene: Scene) -> tuple[str, ...]:
    """By a sigmoid in front, which gives the same loss."""

    def change(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Any] | None:
        if name != "binary_cross_entropy" or not args:
            return None
        return [args[0].sigmoid(), *args[1:]], kwargs

    runs = scene.trials.runs_replaced(change, scene.args, scene.kwargs)
    return ("a sigmoid in front of the loss, which is the same: runs through",) if runs else ()


def find_value_target(scene: Scene) -> Diagnosis | None:
    """Losses that compare number by number: equal shapes, floating point."""
    pair = _pair(scene)
    if scene.recorder.function_name not in _BY_VALUE or pair is None:
        return None
    answers, targets = pair
    y = scene.variable_of(targets) or "y"
    plain = not targets.is_floating_point()
    if answers.shape == targets.shape and not plain:
        return None
    says = (
        f"{scene.recorder.function_name} compares number by number: answers of {human_shape(tuple(answers.shape))}, "
        f"targets of {human_shape(tuple(targets.shape))}, {str(targets.dtype).removeprefix('torch.')}."
    )
    steps, fixes = [], []
    if answers.shape != targets.shape:
        if answers.numel() != targets.numel():
            return Diagnosis(cause="target-shape", says=says, fix="Both have to have one shape.")
        steps.append(f"{y} = {y}.view_as({scene.variable_of(answers) or 'answers'})")
        fixes.append("give the targets the shape of the answers")
    if plain:
        steps.append(f"{y} = {y}.float()")
        fixes.append("make them floating point")
    fix = " and ".join(fixes)
    return Diagnosis(
        cause="target-shape" if answers.shape != targets.shape else "target-type",
        says=says,
        fix=f"{fix[0].upper()}{fix[1:]}.",
        code="\n".join(steps),
    )


LAST = (Cause(kinds=("values-not-finite",), find=find_not_finite),)
CAUSES = (
    Cause(kinds=("loss-values",), find=find_no_probabilities),
    Cause(kinds=("target-class", "target-shape", "target-type"), find=find_class_target),
    Cause(kinds=("target-shape", "target-type"), find=find_value_target),
)
