"""What the file adds to the error that was made with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from inspector.architectures.recognise import recognise
from inspector.architectures.targets import parse_target
from inspector.architectures.types import Candidate
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.error_messages.halves import lone_list
from inspector.error_messages.report import KeyEvidence, PastedError
from inspector.error_messages.safe_globals import lines_that_allow
from inspector.errors import InspectorError
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.readers.unpickle.globals.verdicts import weights_only_allows
from inspector.units import counted, shorten_middle

# Errors that lines with the globals of the file mend, and those that its globals only explain.
_ALLOWED = frozenset(
    {"unsupported-global", "unsupported-class", "unsupported-build", "unsupported-filling", "weights-only"}
)
_ABOUT_GLOBALS = _ALLOWED | {"blocked-global", "missing-class", "missing-module", "newer-torch-file", "numpy-2-file"}
_ABOUT_DEVICES = frozenset({"no-such-device", "too-few-devices", "unknown-device", "parallel-device", "two-devices"})


@dataclass(frozen=True, slots=True)
class Beside:
    """says: sentences about the file and the error together. code: lines that load this file into that model, or ""."""

    says: tuple[str, ...] = ()
    code: str = ""


def describe_file(errors: Sequence[PastedError], checkpoint: Checkpoint | None, unreadable: str) -> Beside:
    """What the file is, and whether the error can be about it."""
    if checkpoint is None:
        return Beside((unreadable,) if unreadable else ())
    recognition = recognise(checkpoint)
    told = recognition.says
    if checkpoint.tensors and not checkpoint.state_dicts:
        told = f"It holds {counted(len(checkpoint.tensors), 'tensor')}, and no state dict that is a plain dictionary."
    says = [f"{checkpoint.origin.name}: {checkpoint.format_says}. {told}"]
    kinds = {error.kind for error in errors}
    code = ""
    if kinds & _ABOUT_GLOBALS:
        says.append(_globals(checkpoint))
    if kinds & _ALLOWED:
        code = _lines_for(checkpoint)
    if kinds & _ABOUT_DEVICES:
        devices = Counter(tensor.device for tensor in checkpoint.tensors if tensor.device)
        if devices:
            where = ", ".join(f"{n:,} on {device}" for device, n in devices.most_common(4))
            says.append(f"Its tensors were saved {where}.")
    for error in errors:
        if error.keys is not None:
            more, code = _keys(error.keys, checkpoint, recognition.best, container=error.kind == "whole-checkpoint")
            says += more
            break
    return Beside(tuple(says), code)


def _globals(checkpoint: Checkpoint) -> str:
    others = _refused(checkpoint)
    if not others:
        return "It names nothing that weights_only=True refuses."
    more = f" and {len(others) - 4:,} more" if len(others) > 4 else ""
    names = ", ".join(shorten_middle(name, 60) for name in others[:4])
    return (
        f"It names {counted(len(others), 'global')} that weights_only=True refuses: {names}{more}. None was run here."
    )


def _lines_for(checkpoint: Checkpoint) -> str:
    """Lines that allow just what this file names, "" when there is nothing to allow or one of it must not be."""
    code = lines_that_allow([name.removeprefix("builtins.") for name in _refused(checkpoint)])
    return code.replace("torch.load(path,", f"torch.load({checkpoint.origin.name!r},")


def _refused(checkpoint: Checkpoint) -> list[str]:
    names = dict.fromkeys(use.name for use in checkpoint.globals)
    return [name for name in names if not weights_only_allows(*_split(name))]


def _split(name: str) -> tuple[str, str]:
    module, _, last = name.rpartition(".")
    return module, last


def _keys(
    keys: KeyEvidence, checkpoint: Checkpoint, best: Candidate | None, *, container: bool
) -> tuple[list[str], str]:
    if container:
        held = {label for label, _ in checkpoint.root.children}
        fits = set(keys.lists.unexpected) <= held
    else:
        fits = any(_agrees(keys, state) for state in checkpoint.state_dicts)
    if not fits:
        return [f"The error is not about this file as it is: {_difference(keys, checkpoint)}."], ""
    label, own = _model(keys, best), ""
    if not label and lone_list(keys.lists) and best is not None:
        # One list does not say which model it is, so this is the file's own architecture.
        label, own = f"{best.spec.library}/{best.spec.name}", "its own architecture, "
    if not label:
        return ["The error's lists agree with this file."], ""
    try:
        target = parse_target(label, candidate=best)
        report = diagnose(checkpoint, target)
    except InspectorError:
        return ["The error's lists agree with this file."], ""
    code = ""
    if report.plan is not None and report.plan.complete and not report.plan.lost:
        code = python_code(report.plan, file_name=checkpoint.origin.name)
    return [f"The error's lists agree with this file. Against {own}{target.label}: {report.says}"], code


def _model(keys: KeyEvidence, best: Candidate | None) -> str:
    """The model of the error as a target; the file's own architecture where the error leaves several."""
    if len(keys.model_is) == 1:
        return keys.model_is[0]
    own = f"{best.spec.library}/{best.spec.name}" if best is not None else ""
    return own if own in keys.model_is else ""


def _agrees(keys: KeyEvidence, state: StateDict) -> bool:
    shapes = {tensor.name: tensor.shape for tensor in state.tensors}
    names = shapes.keys() | set(state.others)
    return (
        all(name in names for name in keys.lists.unexpected)
        and not any(name in names for name in keys.lists.missing)
        and all(shapes.get(name) == shape for name, shape, _ in keys.lists.reshaped)
    )


def _difference(keys: KeyEvidence, checkpoint: Checkpoint) -> str:
    shapes = {t.name: t.shape for state in checkpoint.state_dicts for t in state.tensors}
    others = {name for state in checkpoint.state_dicts for name in state.others}
    for name in keys.lists.unexpected:
        if name not in shapes and name not in others:
            return f'"{shorten_middle(name, 60)}", unexpected in the error, is not in it'
    for name in keys.lists.missing:
        if name in shapes:
            return f'"{shorten_middle(name, 60)}", missing in the error, is in it'
    for name, shape, _ in keys.lists.reshaped:
        if shapes.get(name) != shape:
            return f'"{shorten_middle(name, 60)}" has another shape in it than in the error'
    return "no one state dict in it has these names"
