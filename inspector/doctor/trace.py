"""One forward pass of a model that is at hand, watched from the first module to the answer or the failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import nn

from inspector.doctor.answers import find_fixed, find_scale, with_answers
from inspector.doctor.backward import find_backward
from inspector.doctor.building import FAILED
from inspector.doctor.causes import diagnose_failure
from inspector.doctor.consequences import explained
from inspector.doctor.constructors import line_that_makes
from inspector.doctor.draws import RANDOM, random_finding
from inspector.doctor.frames import nearest_line, without_folders
from inspector.doctor.linearity import find_linear
from inspector.doctor.loss_pairs import find_mismatch_inside
from inspector.doctor.modes import difference_of, find_random, follows_input, in_mode, reading_mode, run_in_mode
from inspector.doctor.origin import Origin, bad_to_begin, find_origin
from inspector.doctor.own_layers import MADE_IN_FORWARD, find_own_layers, plain_tensors
from inspector.doctor.ranges import find_unscaled
from inspector.doctor.record import Recorder
from inspector.doctor.report import Diagnosis, End, Failure, Modes, Sureness, Trace
from inspector.doctor.reshapes import find_reshaped
from inspector.doctor.samples import MIXED, find_mixed, says_batch_first, sums_alone
from inspector.doctor.scene import Scene
from inspector.doctor.shared import find_alike, find_same_objects
from inspector.doctor.signs import (
    GIVES_NOTHING,
    NOT_FINITE,
    find_bad_values,
    find_dead,
    find_saturated,
    find_spread,
    find_too_large,
    greatest_of,
)
from inspector.doctor.softmax_axes import find_of_one, find_wrong_axes
from inspector.doctor.trials import Trials, copied, holds_lazy
from inspector.doctor.unused import find_unused
from inspector.doctor.zero_weights import find_stuck
from inspector.errors import ModelError
from inspector.findings import Finding, Severity, ranked
from inspector.forward.settings import settings_as_written
from inspector.forward.watch import ForwardError, tensors_in, watch
from inspector.units import with_article

_MOST_ENDS = 8
_ACTIVATIONS = ("softmax", "logsoftmax", "sigmoid", "relu")
_BAD = ("output-not-finite", "output-all-zeros", "output-constant")


def trace_model(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    label: str,
    input_from: str = "",
    training: bool = False,
    modes: bool = True,
    batched: bool = False,
) -> Trace:
    """Run `model(*args, **kwargs)` and say what happened; the model is left as it was.

    label: what to call it. input_from: how the input was made, for the report. training: run it so, with gradients
    recorded, else in evaluation. modes: also run the other mode and compare. batched: dimension 0 of the input is
    known to be the batch.
    Raises ModelError for what is no torch.nn.Module.
    """
    if not isinstance(model, nn.Module):
        raise ModelError(f"{label} is a {type(model).__name__}, not a torch.nn.Module.")
    given, named = tuple(args), dict(kwargs or {})
    if "_modules" not in vars(model):
        return _unmade(model, label, input_from, training)
    values = not any(tensor.is_meta for tensor in tensors_in((given, named)))
    # A forward may change its input in place: each pass gets tensors of its own.
    ran, ran_named = copied(given, named)
    recorder = Recorder(model, ran, ran_named, values=values, gradients=training)
    skipped, before = _skipped(model, values), plain_tensors(model)
    inputs = tuple(
        (name, recorder.facts(tensor))
        for name, value in (*((str(i), value) for i, value in enumerate(ran)), *ran_named.items())
        for tensor in tensors_in(value)
    )
    failure: Failure | None = None
    diagnosis: Diagnosis | None = None
    findings: list[Finding] = []
    output: Any = None
    with in_mode(model, training=training):
        try:
            output = watch(model, ran, ran_named, recorder, grad=training, one_device=not values)
        except ForwardError as raised:
            scene = Scene(model, given, named, raised, recorder, Trials(model))
            diagnosis = diagnose_failure(scene)
            failure = _failure(scene)
            findings.append(FAILED.found(diagnosis.says, subjects=(_path(scene),), remedy=diagnosis.fix))
            _let_go(raised)
        if training and failure is None and values:
            findings += find_backward(model, output, recorder)
            findings += find_stuck(model, given, named, recorder.used)
    first_bad: str | None = None
    if values:
        bad = list(find_bad_values(model, recorder))
        bad = explained(model, recorder, bad, partial(follows_input, model, given, named, training=training))
        first_bad = next((f.subjects[0] for f in bad if f.id in _BAD and f.severity is not Severity.INFO), None)
        if first_bad is not None and failure is None:
            bad, first_bad = _with_origin(
                bad, first_bad, find_origin(model, given, named, training=training), bad_to_begin(model, given, named)
            )
        findings += bad
        last = next((call.path for call in reversed(recorder.calls) if call.ended and call.path), "")
        findings += [
            *find_dead(recorder.dead),
            *find_saturated(recorder.saturations, last, unscaled=recorder.unscaled is not None),
        ]
    first = next(tensors_in((given, named)), None)
    findings += find_spread(
        recorder,
        first.shape[0] if first is not None and first.dim() else 0,
        gives_loss=any(t.dim() == 0 and t.is_floating_point() for t in tensors_in(output)),
    )
    findings += find_own_layers(model, recorder, before)
    if failure is None and next(tensors_in(output), None) is None:
        kind = type(output).__name__
        findings.append(
            GIVES_NOTHING.found(
                f"The forward gives {with_article(kind)}, and no tensor in it.",
                remedy=_remedy(output),
            )
        )
    compared: Modes | None = None
    if failure is None and modes and values:
        compared, more = _compare(model, given, named, recorder, training, batched or says_batch_first(model))
        # Weights that are made anew are random, and told of already.
        made_anew = any(f.id == MADE_IN_FORWARD.id for f in findings)
        findings += [f for f in more if f.id != RANDOM.id or not made_anew]
    if failure is None:
        findings += find_reshaped(recorder.reshapes, told=any(f.id == MIXED.id for f in findings))
    if failure is None and values:
        findings += find_unused(model, {call.path for call in recorder.calls}, recorder.used, recorder.lines_of_calls)
    findings += find_same_objects(model)
    if values:
        findings += find_alike(model, recorder.used)
        findings += find_unscaled(recorder.unscaled, model, recorder.calls)
    # The diagnosis says it already.
    if diagnosis is None or diagnosis.cause != "loss-values":
        findings += find_mismatch_inside(recorder.losses)
    findings += [*find_wrong_axes(recorder.axes.found), *find_of_one(recorder.of_one)]
    greatest = greatest_of(recorder.calls) if values else None
    findings += find_too_large(greatest)
    if failure is None and values:
        fixed = [*find_fixed(model, given, named, output, recorder, training=training)]
        findings = with_answers(findings, find_scale(model, recorder), fixed)
        findings += find_linear(model, given, named, recorder)
    return Trace(
        target=label,
        inputs=inputs,
        input_from=input_from,
        training=training,
        calls=tuple(recorder.calls),
        operators=recorder.operators,
        failure=failure,
        diagnosis=diagnosis,
        findings=ranked(findings),
        first_bad=first_bad,
        dead=tuple(recorder.dead),
        saturations=tuple(recorder.saturations),
        greatest=greatest,
        modes=compared,
        skipped=tuple(skipped),
        ends=_ends(model, output, recorder),
    )


def _ends(model: nn.Module, output: Any, recorder: Recorder) -> tuple[End, ...]:
    """With the line that makes the activation, where it is a layer of its own."""
    found = []
    modules = dict(model.named_modules())
    for tensor in islice(tensors_in(output), _MOST_ENDS):
        if not tensor.is_floating_point() or not tensor.dim():
            continue
        end = recorder.end_of(tensor) or End(function="", path="")
        layer = end.path in modules and type(modules[end.path]).__name__.lower() in _ACTIVATIONS and end.path
        found.append(replace(end, line=line_that_makes(model, end.path) or end.line) if layer else end)
    return tuple(found)


def _with_origin(bad: list[Finding], first_bad: str, origin: Origin | None, given: str) -> tuple[list[Finding], str]:
    """The finding of what is not finite names the operator and its line, where a module only handed it on.

    given: a sentence about an input or weight that is not finite itself.
    """
    if origin is None:
        return [replace(one, remedy=given or one.remedy) if one.id == NOT_FINITE.id else one for one in bad], first_bad
    line = f" ({origin.line.file}, line {origin.line.line}: {origin.line.text})" if origin.line is not None else ""
    found = []
    for one in bad:
        if one.id == NOT_FINITE.id and one.severity is Severity.ERROR:
            elsewhere = origin.inside != one.subjects[0]
            first_bad = origin.inside if elsewhere and one.subjects[0] == first_bad else first_bad
            where = origin.inside or "the model itself"
            rest = one.says.replace("The model", "the model", 1) if one.says.startswith("The model") else one.says
            one = replace(
                one,
                says=f"{origin.operator} in {where}{line} makes the first {origin.makes}"
                + (f": {origin.operand}; {rest}" if origin.operand else f"; {rest}"),
                subjects=(origin.inside,) if elsewhere else one.subjects,
                remedy=origin.why or one.remedy,
            )
        found.append(one)
    return found, first_bad


def _remedy(output: Any) -> str:
    if isinstance(output, nn.Module):
        return "A class was called where one of it was meant: nn.ReLU() in __init__, with brackets."
    return "Its forward has no return, or one without a value." if output is None else ""


def _path(scene: Scene) -> str:
    """The failing module's path."""
    return scene.call.path if scene.call is not None else ""


def _skipped(model: nn.Module, values: bool) -> list[str]:
    found = []
    scripted = [path or "the model" for path, m in model.named_modules() if isinstance(m, torch.jit.ScriptModule)]
    if scripted:
        found.append(f"{scripted[0]} is TorchScript: its modules run out of sight, its operators do not.")
    lazy = [path or "the model" for path, module in model.named_modules() if holds_lazy(module)]
    if lazy:
        found.append(f"{lazy[0]} was lazy: this pass gave it its shape.")
    if not values:
        found.append("The input is on meta: no values were computed, so none were looked at.")
    return found


def _failure(scene: Scene) -> Failure:
    layer = scene.layer
    settings = settings_as_written(layer)
    return Failure(
        stack=tuple(call.number for call in scene.raised.calls),
        error=type(scene.error).__name__,
        says=scene.first_line,
        operator=scene.operator,
        operands=tuple(map(scene.recorder.facts, scene.operands[:8])),
        expects=f"{type(layer).__name__}({settings})" if settings else "",
        line=nearest_line(scene.frames),
    )


def _let_go(raised: ForwardError) -> None:
    """The frames of a traceback hold every activation."""
    error: BaseException | None = raised
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _unmade(model: nn.Module, label: str, input_from: str, training: bool) -> Trace:
    kind = type(model).__name__
    says = f"{kind} was made without nn.Module's own __init__."
    diagnosis = Diagnosis(
        cause="no-super-init", says=says, fix="Begin its __init__ with the line below.", code="super().__init__()"
    )
    failure = Failure(stack=(), error="AttributeError", says=says, operator="", operands=(), expects="", line=None)
    return Trace(
        target=label, inputs=(), input_from=input_from, training=training, calls=(), failure=failure,
        diagnosis=diagnosis, findings=(FAILED.found(says, remedy=diagnosis.fix),),
    )  # fmt: skip


def _compare(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], recorder: Recorder, training: bool, batched: bool
) -> tuple[Modes, list[Finding]]:
    """The same input once more in either mode; in evaluation also behind other samples.

    Training comes last: what it changes in plain attributes is not given back.
    """
    kinds = reading_mode(model, {call.path for call in recorder.calls})
    sums = sums_alone(model, args, kwargs)
    try:
        ours = run_in_mode(model, args, kwargs, training=False, listener=sums)
    except ForwardError as raised:
        return Modes(modules=kinds, difference=None, relative=None, failure=_of_mode(raised)), []
    draws = find_random(model, args, kwargs, ours)
    random = draws is not None
    mixed = [] if draws is None else [random_finding(draws)]
    if draws is None and sums is not None:
        mixed += find_mixed(model, args, kwargs, ours, sums, recorder, batched=batched)
    try:
        other = run_in_mode(model, args, kwargs, training=True)
    except ForwardError as raised:
        failure = None if training else _of_mode(raised)
        return Modes(modules=kinds, difference=None, relative=None, failure=failure, random=random), mixed
    found = difference_of(ours, other)
    difference, relative = found if found is not None else (None, None)
    return Modes(modules=kinds, difference=difference, relative=relative, random=random), mixed


def _of_mode(raised: ForwardError) -> Diagnosis:
    """In the words of the error: a mode that nobody asked for is no case for trials."""
    path = raised.calls[-1].path if raised.calls else ""
    says = without_folders(str(raised.error).strip().partition("\n")[0])[:300]
    single = "more than 1 value per channel" in says
    _let_go(raised)
    return Diagnosis(
        cause="batch-norm-of-one" if single else "unknown",
        says=f"{path or 'The model itself'}: {says}",
        fix="Train with batches of two or more (drop_last=True in the DataLoader)." if single else "",
        sureness=Sureness.CERTAIN if single else Sureness.UNKNOWN,
    )
