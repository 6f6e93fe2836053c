"""The backward pass of what a forward gave: what was changed in place breaks only there."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import nn

from inspector.doctor.frames import without_folders
from inspector.doctor.record import InPlace
from inspector.findings import Finding, FindingKind, Severity
from inspector.forward.watch import tensors_in
from inspector.units import human_shape

BACKWARD_FAILS = FindingKind("backward-fails", Severity.ERROR, "The backward pass fails")
_SHAPE = re.compile(r"\[torch\.\w+ \[([\d, ]*)\]\]")


def find_backward(model: nn.Module, output: Any, in_place: list[InPlace]) -> Finding | None:
    """Gradients of the sum of all outputs, thrown away; None where they can be had, or nothing wants any."""
    wanted = [p for p in model.parameters() if p.requires_grad]
    answers = [t for t in tensors_in(output) if t.requires_grad and t.is_floating_point()]
    if not wanted or not answers:
        return None
    try:
        torch.autograd.grad([t.sum() for t in answers], wanted, allow_unused=True)
    except Exception as error:  # noqa: BLE001 - a person's own backward may raise anything
        return _said(error, in_place)
    return None


def _said(error: Exception, in_place: list[InPlace]) -> Finding:
    text = str(error).strip()
    first = without_folders(text.partition("\n")[0])[:300]
    if "modified by an inplace operation" not in text:
        return BACKWARD_FAILS.found(f"The backward pass fails: {type(error).__name__}: {first}")
    match = _SHAPE.search(text)
    shape = tuple(int(n) for n in match[1].split(",") if n.strip()) if match else None
    alike = [one for one in in_place if one.shape == shape] or in_place
    places = [
        f"{one.operator} in {one.inside or 'the model itself'}"
        + (f" ({one.line.file}, line {one.line.line}: {one.line.text})" if one.line else "")
        for one in alike[:3]
    ]
    what = f" of {human_shape(shape)}" if shape else ""
    return BACKWARD_FAILS.found(
        f"The backward pass fails: a tensor{what} that it needs was changed in place"
        + (f" by {' or '.join(places)}." if places else "."),
        subjects=tuple(dict.fromkeys(one.inside for one in alike[:3])),
        remedy="Make a new tensor there (x = x + 1, not x += 1), or take out inplace=True.",
    )
