"""The backward pass of what a forward gave: what was changed in place breaks only there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from inspector.doctor.cuts import Cut
from inspector.doctor.frames import returning_line, without_folders
from inspector.doctor.gradients import Origins, find_bad_gradients, find_vanished, nodes_behind
from inspector.doctor.observations import InPlace
from inspector.doctor.record import Recorder
from inspector.findings import Finding, FindingKind, Severity
from inspector.forward.watch import tensors_in
from inspector.units import counted, human_shape

BACKWARD_FAILS = FindingKind("backward-fails", Severity.ERROR, "The backward pass fails")
NO_GRADIENT = FindingKind("no-gradient", Severity.WARNING, "No gradient reaches parameters that ran", (Severity.INFO,))
_CUT = (
    "Something cuts the graph behind them: detach, .data, no_grad, argmax, rounding, NumPy, or a checkpoint "
    "(use_reentrant=True) whose input needs no gradient."
)
_BY_NATURE = "The forward takes gradients itself: what is only added to what it differentiates is gone in them."
_MOST_CUTS = 3
_OFF = "Take it off what is to learn; requires_grad_(False) freezes a part and lets gradients through."
_REMEDIES = {
    "detach": "Take detach() out; what has to leave torch there can be written in torch.",
    "detach_": "Take detach_() out.",
    ".data": "Use the tensor itself, not its .data.",
    "numpy": "NumPy knows no gradients: write it in torch.",
    "grad": "autograd.grad(..., create_graph=True) keeps the graph there.",
    "tolist": "Python's numbers know no gradients: write it in torch.",
    "item": "Python's numbers know no gradients: keep the tensor.",
    "no_grad": _OFF,
    "inference_mode": _OFF,
    "checkpoint": "checkpoint(..., use_reentrant=False), or an input that wants a gradient.",
}
_OTHERWISE = "What it gives has no gradient: use softmax for argmax, a straight-through estimate for rounding."
_COUNT = re.compile(r"function (\w+) returned an incorrect number of gradients \(expected (\d+), got (\d+)\)")
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
    origins = Origins()
    kept = {name: p.grad for name, p in wanted.items()}
    try:
        for p in wanted.values():
            p.grad = None
        finite = all(bool(t.isfinite().all()) for t in answers)
        with origins.heard(answers) if finite else nullcontext():
            torch.autograd.backward([t.sum() for t in answers])
        if finite:
            yield from find_bad_gradients(wanted, origins, recorder.lines)
            yield from find_vanished(wanted, [call.path for call in recorder.calls])
        cut = [name for name, p in wanted.items() if p.grad is None]
    except Exception as error:  # noqa: BLE001 - a person's own backward may raise anything
        yield _wrong_count(error, answers) or _said(error, recorder.in_place)
        return
    finally:
        for name, p in wanted.items():
            p.grad = kept[name]
    if cut:
        cuts = recorder.cuts.behind({id(wanted[name]) for name in cut})
        by_nature = recorder.differentiates and not cuts and all(name.endswith("bias") for name in cut)
        more = f" and {len(cut) - 3:,} more" if len(cut) > 3 else ""
        yield NO_GRADIENT.found(
            f"No gradient reaches {len(cut):,} of {len(wanted):,} parameters that ran: {', '.join(cut[:3])}{more}"
            f"{_told(cuts)}.",
            subjects=tuple(dict.fromkeys(name.rpartition(".")[0] for name in cut))[:20],
            evidence=(("parameters", len(cut)),),
            severity=Severity.INFO if by_nature else None,
            remedy=_BY_NATURE if by_nature else _remedy(cuts),
        )
    told = {one.line for one in recorder.cuts.behind({id(wanted[name]) for name in cut})} if cut else set()
    for line, (left, remade, tensor) in recorder.cuts.remade.items():
        if line not in told and id(tensor) in recorder.used:
            yield NO_GRADIENT.found(
                f"{left} and {remade} ({line.file}, line {line.line}: {line.text}) take values out of torch and make a "
                "new tensor of them: no gradient goes back through it, only past it.",
                evidence=(("file", line.file), ("line", line.line), ("text", line.text)),
                remedy=_REMEDIES.get(left, _OTHERWISE),
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


def _wrong_count(error: Exception, answers: Sequence[Tensor]) -> Finding | None:
    """A Function of the person's own whose backward gives more or fewer gradients than its forward has inputs."""
    match = _COUNT.search(str(error))
    if match is None:
        return None
    node, wanted, given = match[1], int(match[2]), int(match[3])
    own = next(
        (cls for one in nodes_behind(answers) if one.name() == node and (cls := getattr(one, "_forward_cls", None))),
        None,
    )
    name, inputs, where = node.removesuffix("Backward"), "", ""
    if own is not None:
        code = getattr(own.forward, "__code__", None)
        named = code.co_varnames[: code.co_argcount] if code is not None else ()
        # With setup_context the forward takes no ctx.
        named = named[-wanted:] if len(named) >= wanted else ()
        inputs = f" ({', '.join(named)})" if named else ""
        line = returning_line(own.backward)
        where = f" ({line.file}, line {line.line}: {line.text})" if line is not None else ""
    return BACKWARD_FAILS.found(
        f"The backward pass fails: {name}.backward{where} returns {counted(given, 'gradient')} for the "
        f"{counted(wanted, 'input')} of its forward{inputs}.",
        evidence=(("wanted", wanted), ("given", given)),
        remedy="It returns one for each input of forward, in order, and None for each that needs none"
        + (f": return ...{', None' * (wanted - given)}." if given < wanted else "."),
    )


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
