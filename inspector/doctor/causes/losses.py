"""Losses inside of forward: targets of another shape, type or numbering than the loss takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from inspector.doctor.causes.entry import Cause
from inspector.doctor.report import Diagnosis
from inspector.doctor.scene import Scene
from inspector.units import human_shape

_BY_CLASS = ("cross_entropy", "nll_loss", "nll_loss2d", "cross_entropy_loss", "nll_loss_nd")
_BY_VALUE = (
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
)  # fmt: skip
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
            code="y = y - 1" if counted_from_one else "",
        )
    says = f"The loss does not take these targets: {shapes}, {str(targets.dtype).removeprefix('torch.')}."
    single = targets.dim() == answers.dim() and targets.dim() > 1 and targets.shape[1] == 1
    if single and classes != 1:
        return Diagnosis(
            cause="target-shape",
            says=says,
            fix="It takes one whole number for each sample: take out the dimension of 1.",
            code="y = y.squeeze(1)" + ("" if targets.dtype is torch.int64 else ".long()"),
        )
    if answers.shape == targets.shape and not targets.is_floating_point():
        return Diagnosis(
            cause="target-shape",
            says=says,
            fix="Targets shaped like the answers are probabilities, in floating point; a class is one whole number.",
            code="y = y.argmax(1)  # or y.float()",
        )
    if targets.is_floating_point() and targets.dim() == answers.dim() - 1:
        return Diagnosis(
            cause="target-type", says=says, fix="Numbers of classes are whole numbers.", code="y = y.long()"
        )
    rest = tuple(targets.shape[1:])
    if answers.dim() > 2 and targets.dim() == answers.dim() - 1 and tuple(answers.shape[1:-1]) == rest:
        return Diagnosis(
            cause="target-shape",
            says=says,
            fix="The classes stand last in the answers; the loss takes them second.",
            code="loss(answers.movedim(-1, 1), y)",
        )
    if answers.dim() > 1 and targets.dim() and answers.shape[0] != targets.shape[0]:
        return Diagnosis(cause="target-shape", says=says, fix="There are to be as many targets as answers.")
    return None


def find_value_target(scene: Scene) -> Diagnosis | None:
    """Losses that compare number by number: equal shapes, floating point."""
    pair = _pair(scene)
    if scene.recorder.function_name not in _BY_VALUE or pair is None:
        return None
    answers, targets = pair
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
        steps.append("y = y.view_as(answers)")
        fixes.append("give the targets the shape of the answers")
    if plain:
        steps.append("y = y.float()")
        fixes.append("make them floating point")
    fix = " and ".join(fixes)
    return Diagnosis(
        cause="target-shape" if answers.shape != targets.shape else "target-type",
        says=says,
        fix=f"{fix[0].upper()}{fix[1:]}.",
        code="\n".join(steps),
    )


CAUSES = (
    Cause(kinds=("target-class", "target-shape", "target-type"), find=find_class_target),
    Cause(kinds=("target-shape", "target-type"), find=find_value_target),
)
