"""The backward pass of what a forward gave: what was changed in place breaks only there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from inspector.doctor.cuts import Cut
from inspector.doctor.frames import without_folders
from inspector.doctor.record import InPlace, Recorder
from inspector.findings import Finding, FindingKind, Severity
from inspector.forward.watch import tensors_in
from inspector.units import human_shape

BACKWARD_FAILS = FindingKind("backward-fails", Severity.ERROR, "The backward pass fails")
NO_GRADIENT = FindingKind("no-gradient", Severity.WARNING, "No gradient reaches parameters that ran")
_CUT = (
    "Something cuts the graph behind them: detach, .data, no_grad, argmax, rounding, NumPy, or a checkpoint "
    "(use_reentrant=True) whose input needs no gradient."
)
_MOST_CUTS = 3
_OFF = "Take it off what is to learn; requires_grad_(False) freezes a part and lets gradients through."
_REMEDIES = {
    "detach": "Take detach() out; what has to leave torch there can be written in torch.",
    "detach_": "Take detach_() out.",
    ".data": "Use the tensor itself, not its .data.",
    "numpy": "NumPy knows no gradients: write it in torch.",
    "tolist": "Python's numbers know no gradients: write it in torch.",
    "item": "Python's numbers know no gradients: keep the tensor.",
    "no_grad": _OFF,
    "inference_mode": _OFF,
    "checkpoint": "checkpoint(..., use_reentrant=False), or an input that wants a gradient.",
}
_OTHERWISE = "What it gives has no gradient: use softmax for argmax, a straight-through estimate for rounding."
_SHAPE = re.compile(r"\[torch\.\w+ \[([\d, ]*)\]\]")


def find_backward(model: nn.Module, output: Any, recorder: Recorder) -> Iterator[Finding]:
    """What gradients of the sum of all outputs say; they are thrown away again.

    A parameter that ran and gets none was cut off; one that is zero throughout is not meant (ReZero starts so).
    """
    # A module that failed where its caller catches the error took no part.
    failed = {call.path for call in recorder.calls} - {call.path for call in recorder.calls if call.ended}
    ran = {
        name: p
        for name, p in model.named_parameters()
        if id(p) in recorder.used and name.rpartition(".")[0] not in failed
    }
    wanted = {name: p for name, p in ran.items() if p.requires_grad}
    answers = [t for t in tensors_in(output) if t.is_floating_point()]
    if not ran or not answers:
        return
    if not wanted:
        yield NO_GRADIENT.found(
            f"All {len(ran):,} parameters that ran are frozen: nothing can be trained.",
            evidence=(("parameters", len(ran)),),
            remedy="requires_grad_(True) for what is to learn.",
        )
        return
    answers = [t for t in answers if t.requires_grad]
    if not answers:
        cuts = recorder.cuts.behind({id(p) for p in wanted.values()})
        yield NO_GRADIENT.found(
            f"No output carries a gradient, though {len(wanted):,} parameters that ran want one{_told(cuts)}.",
            evidence=(("parameters", len(wanted)),),
            remedy=_remedy(cuts),
        )
        return
    kept = {name: p.grad for name, p in wanted.items()}
    try:
        for p in wanted.values():
            p.grad = None
        torch.autograd.backward([t.sum() for t in answers])
        cut = [name for name, p in wanted.items() if p.grad is None]
    except Exception as error:  # noqa: BLE001 - a person's own backward may raise anything
        yield _said(error, recorder.in_place)
        return
    finally:
        for name, p in wanted.items():
            p.grad = kept[name]
    if cut:
        cuts = recorder.cuts.behind({id(wanted[name]) for name in cut})
        more = f" and {len(cut) - 3:,} more" if len(cut) > 3 else ""
        yield NO_GRADIENT.found(
            f"No gradient reaches {len(cut):,} of {len(wanted):,} parameters that ran: {', '.join(cut[:3])}{more}"
            f"{_told(cuts)}.",
            subjects=tuple(dict.fromkeys(name.rpartition(".")[0] for name in cut))[:20],
            evidence=(("parameters", len(cut)),),
            remedy=_remedy(cuts),
        )


def _told(cuts: Sequence[Cut]) -> str:
    """Which functions cut the graph, as a clause."""
    if not cuts:
        return ""
    places = [
        one.name + (f" ({one.line.file}, line {one.line.line}: {one.line.text})" if one.line is not None else "")
        for one in cuts[:_MOST_CUTS]
    ]
    return f": {' and '.join(places)} {'cut' if len(places) > 1 else 'cuts'} the graph there"


def _remedy(cuts: Sequence[Cut]) -> str:
    return next((_REMEDIES[one.name] for one in cuts if one.name in _REMEDIES), _OTHERWISE) if cuts else _CUT


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
