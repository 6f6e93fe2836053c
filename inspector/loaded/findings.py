"""What is to be said of a comparison: nothing loaded, layers left out, exchanged, moved, averages, modes, devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import Shape
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.keys.plan import listed
from inspector.loaded.report import Held, LoadedTensor, UnusedTensor
from inspector.units import counted, human_distance, human_shape, with_article

REPLACED = FindingKind("state-dict-replaced", Severity.ERROR, "A method was overwritten instead of called")
NOTHING = FindingKind("nothing-loaded", Severity.ERROR, "The model holds nothing of the file")
OTHERS = FindingKind("exchanged-tensors", Severity.ERROR, "Tensors hold other tensors' values")
HEAD_SIZE = FindingKind("left-out-by-shape", Severity.WARNING, "Tensors of another shape were left out")
INITIAL = FindingKind("left-at-initialisation", Severity.WARNING, "Tensors stayed at their initialisation")
STATISTICS = FindingKind("statistics-moved", Severity.WARNING, "Running statistics changed after loading")
CHANGED = FindingKind("values-changed", Severity.WARNING, "Tensors hold other values than the file")
ABSENT = FindingKind("tensors-not-in-file", Severity.WARNING, "The file has no such tensors")
UNUSED = FindingKind("file-tensors-unused", Severity.WARNING, "Tensors of the file went nowhere")
AVERAGES = FindingKind("averages-unused", Severity.NOTICE, "The file's averaged weights are not in the model")
TIES = FindingKind("tied-places-differ", Severity.WARNING, "One parameter stands for two tensors of the file")
MIXED = FindingKind("mixed-modes", Severity.WARNING, "Parts are in train mode though the model is not")
TRAINING = FindingKind("train-mode", Severity.INFO, "The model is in train mode")
FROZEN = FindingKind("all-frozen", Severity.NOTICE, "No parameter asks for a gradient")
DEVICES = FindingKind("several-devices", Severity.NOTICE, "The model lies on several devices")
TYPES = FindingKind("several-types", Severity.NOTICE, "The weights have several element types")
NO_NUMBERS = FindingKind("places-without-numbers", Severity.ERROR, "Tensors of the model have no numbers")

_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
_MODAL = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What the checks look at. tensors, unused: without what was left out on purpose; the rest as of the report."""

    model: nn.Module
    source: str
    tensors: tuple[LoadedTensor, ...]
    unused: tuple[UnusedTensor, ...]
    in_file: dict[str, Shape]
    averages: tuple[tuple[str, int], ...]
    conflicts: tuple[tuple[str, str], ...]
    repair: str

    @property
    def learned(self) -> tuple[LoadedTensor, ...]:
        """Without counters."""
        return tuple(one for one in self.tensors if not is_bookkeeping(one.name))


def overwritten(model: nn.Module) -> Iterator[tuple[str, str]]:
    """(module path, method) where something that is no method stands in place of state_dict or load_state_dict."""
    for path, module in model.named_modules():
        for name in ("state_dict", "load_state_dict"):
            if name in vars(module) and not callable(vars(module)[name]):
                yield path, name


def _replaced(scene: Scene) -> Iterator[Finding]:
    for path, name in overwritten(scene.model):
        where = f"model.{path}" if path else "model"
        kind = type(vars(scene.model.get_submodule(path))[name]).__name__
        yield REPLACED.found(
            f"{where}.{name} is {with_article(kind)}: it was assigned where a method is to be called, which loads "
            "nothing, raises nothing, and hides the method.",
            subjects=(path,),
            remedy=f"del {where}.{name}\n{where}.load_state_dict(state_dict)",
        )


def _nothing(scene: Scene) -> Iterator[Finding]:
    if scene.learned and not any(one.held not in (Held.INITIAL, Held.CHANGED, Held.ABSENT) for one in scene.learned):
        close = [one for one in scene.learned if one.difference is not None and one.difference < 0.5]
        if len(close) * 2 > len(scene.learned):
            return
        agree = sum(one.source == one.name for one in scene.learned)
        fresh = sum(one.held is Held.INITIAL for one in scene.learned)
        yield NOTHING.found(
            f"None of the {counted(len(scene.learned), 'tensor')} has its values from {scene.source}; {fresh:,} are at "
            f"their initialisation. {agree:,} names are in the file as they are.",
            evidence=(("tensors", len(scene.learned)), ("initial", fresh), ("names", agree)),
            remedy=scene.repair or "Call model.load_state_dict(state_dict) before this, without strict=False.",
        )


def _others(scene: Scene) -> Iterator[Finding]:
    tied = {name for pair in scene.conflicts for name in pair}
    wrong = [one for one in scene.learned if one.held in (Held.OTHER, Held.TRANSPOSED) and one.name not in tied]
    if wrong:
        pairs = [
            f"{one.name} is its own transposed" if one.held is Held.TRANSPOSED
            else f"{one.name} is {one.source}{' transposed' if one.why else ''}"
            for one in wrong
        ]  # fmt: skip
        yield OTHERS.found(
            f"{counted(len(wrong), 'tensor holds', 'tensors hold')} values of another place of the file, bit for bit: "
            f"{listed(pairs)}.",
            subjects=[one.name for one in wrong],
            remedy="The renaming before load_state_dict takes these names for one another.",
        )


def _left_out(scene: Scene) -> Iterator[Finding]:
    other = [
        one for one in scene.learned
        if not one.is_loaded and scene.in_file.get(one.name, one.shape) != one.shape
    ]  # fmt: skip
    if other:
        first = other[0]
        file = scene.in_file[first.name]
        shapes = f"{human_shape(file)} in the file, {human_shape(first.shape)} in the model"
        if len(file) == len(first.shape) and file[1:] == first.shape[1:]:
            shapes = f"{file[0]:,} outputs in the file, {first.shape[0]:,} in the model"
        fresh = sum(one.held is Held.INITIAL for one in other)
        yield HEAD_SIZE.found(
            f"{listed([one.name for one in other])} {'is' if len(other) == 1 else 'are'} not the file's: "
            f"{first.name} has {shapes}. {fresh:,} of {len(other):,} are at their initialisation.",
            subjects=[one.name for one in other],
            evidence=(("tensors", len(other)), ("initial", fresh)),
            remedy="Right for a head that is to be trained anew; else build the model with the file's size.",
        )


def _initial(scene: Scene) -> Iterator[Finding]:
    shaped = {one.name for one in scene.learned if scene.in_file.get(one.name, one.shape) != one.shape}
    fresh = [one for one in scene.learned if one.held is Held.INITIAL and one.name not in shaped]
    if fresh:
        there = [one for one in fresh if one.source]
        sure = sum(one.proved for one in fresh)
        yield INITIAL.found(
            f"{counted(len(fresh), 'tensor')} of {len(scene.learned):,} "
            f"{'is' if len(fresh) == 1 else 'are'} at the initialisation ({sure:,} proved, the rest by bound and "
            f"spread), and equal to no tensor of the file: {listed([one.name for one in fresh])} "
            f"({fresh[0].why}). The file has {len(there):,} of them by name.",
            subjects=[one.name for one in fresh],
            evidence=(("tensors", len(fresh)), ("proved", sure), ("in the file", len(there))),
            remedy=scene.repair or "Load with strict=True and read what it says, or train these layers.",
        )


def _moved(scene: Scene) -> Iterator[Finding]:
    changed = [one for one in scene.tensors if one.held is Held.CHANGED]
    statistics = [one for one in changed if one.name.endswith(_STATISTICS)]
    if statistics:
        yield STATISTICS.found(
            f"{counted(len(statistics), 'running statistic')} of batch norms changed, while "
            f"{sum(one.is_loaded for one in scene.tensors):,} tensors are the file's: the model ran in train mode "
            f"after it was loaded ({listed([one.name for one in statistics])}).",
            subjects=[one.name for one in statistics],
            remedy="Call model.eval() right behind load_state_dict, and load once more.",
        )
    others = [
        one for one in changed
        if one not in statistics and scene.in_file.get(one.name, one.shape) == one.shape
    ]  # fmt: skip
    if others:
        apart = [one.difference for one in others if one.difference is not None]
        sizes = list(dict.fromkeys((human_distance(min(apart)), human_distance(max(apart))))) if apart else []
        far = f", by {' to '.join(sizes)} (relative L2)" if sizes else ""
        yield CHANGED.found(
            f"{counted(len(others), 'tensor')} of {len(scene.learned):,} "
            f"{'differs' if len(others) == 1 else 'differ'} from the file's of the same name{far}: "
            f"{listed([one.name for one in others])}.",
            subjects=[one.name for one in others],
            remedy="Small differences in all of them: it was trained on. Large ones: another file was loaded, or none.",
        )


def _absent(scene: Scene) -> Iterator[Finding]:
    absent = [one for one in scene.learned if one.held is Held.ABSENT]
    if absent:
        yield ABSENT.found(
            f"{counted(len(absent), 'tensor')} of the model {'is' if len(absent) == 1 else 'are'} not in the file, by "
            f"name or by values, and {'looks' if len(absent) == 1 else 'look'} like no initialisation: "
            f"{listed([one.name for one in absent])}.",
            subjects=[one.name for one in absent],
            remedy=scene.repair,
        )


def _unused(scene: Scene) -> Iterator[Finding]:
    # What has a place in the model is told with that place.
    left = [one for one in scene.unused if not one.place and not is_bookkeeping(one.name)]
    if left:
        whys = Counter(one.why for one in left if one.why)
        why = f" ({'; '.join(f'{n:,} because {text}' for text, n in whys.most_common(2))})" if whys else ""
        yield UNUSED.found(
            f"{counted(len(left), 'tensor')} of {scene.source} went nowhere: "
            f"{listed([one.name for one in left])}{why}.",
            subjects=[one.name for one in left],
            remedy=scene.repair,
        )


def _averages(scene: Scene) -> Iterator[Finding]:
    for label, count in scene.averages:
        yield AVERAGES.found(
            f'{scene.source} also holds averaged weights under "{label}" ({counted(count, "tensor")}), which the model '
            "does not hold.",
            subjects=(label,),
            remedy="For evaluation averaged weights are usually the better ones.",
        )


def _ties(scene: Scene) -> Iterator[Finding]:
    for one, other in scene.conflicts:
        yield TIES.found(
            f"{one} and {other} are one parameter of the model and two tensors with different values in the file: "
            "the one that is loaded last stands.",
            subjects=(one, other),
            remedy="Untie them in the model, if the file's network did not tie them.",
        )


def _modes(scene: Scene) -> Iterator[Finding]:
    active = active_modules(scene.model)
    if not active:
        return
    modules = dict(scene.model.named_modules())
    kinds = Counter(type(modules[path]).__name__ for path in active)
    what = ", ".join(f"{n:,} {kind}" for kind, n in kinds.items())
    if not scene.model.training:
        yield MIXED.found(
            f"The model is in evaluation mode and {what} in train mode ({listed(active)}).",
            subjects=active,
            remedy="model.eval()",
        )
    else:
        yield TRAINING.found(
            f"The model is in train mode, {what} included: answers depend on the batch or on chance.",
            subjects=active,
            remedy="model.eval() before inference.",
        )


def _frozen(scene: Scene) -> Iterator[Finding]:
    parameters = [one for one in scene.tensors if not one.is_buffer]
    if scene.model.training and parameters and not any(one.requires_grad for one in parameters):
        yield FROZEN.found(
            f"The model is in train mode and none of its {counted(len(parameters), 'parameter')} asks for a gradient: "
            "training would change nothing.",
            remedy="model.requires_grad_(True)",
        )


def _places(scene: Scene) -> Iterator[Finding]:
    devices = Counter(one.device for one in scene.tensors)
    bare = [one.name for one in scene.tensors if one.device == "meta"]
    if bare:
        yield NO_NUMBERS.found(
            f"{counted(len(bare), 'tensor')} of the model {'is' if len(bare) == 1 else 'are'} on the meta device, "
            f"without numbers: {listed(bare)}.",
            subjects=bare,
            remedy="model.load_state_dict(state_dict, assign=True)",
        )
    elif len(devices) > 1:
        yield DEVICES.found(f"Tensors lie on {', '.join(f'{d} ({n:,})' for d, n in devices.items())}.")
    types = Counter(one.dtype for one in scene.learned if one.dtype.startswith(("float", "bfloat")))
    if len(types) > 1:
        yield TYPES.found(f"Weights are {', '.join(f'{kind} ({n:,})' for kind, n in types.items())}.")


def active_modules(model: nn.Module) -> tuple[str, ...]:
    """Paths of batch norms and dropouts in train mode; a batch norm without statistics is the same in both."""
    return tuple(
        path
        for path, module in model.named_modules()
        if isinstance(module, _MODAL) and module.training and getattr(module, "p", None) != 0
        and getattr(module, "track_running_stats", True)
    )  # fmt: skip


CHECKS = (
    Check(kinds=(REPLACED,), find=_replaced),
    Check(kinds=(NOTHING,), find=_nothing),
    Check(kinds=(OTHERS,), find=_others),
    Check(kinds=(HEAD_SIZE,), find=_left_out),
    Check(kinds=(INITIAL,), find=_initial),
    Check(kinds=(STATISTICS, CHANGED), find=_moved),
    Check(kinds=(ABSENT,), find=_absent),
    Check(kinds=(UNUSED,), find=_unused),
    Check(kinds=(AVERAGES,), find=_averages),
    Check(kinds=(TIES,), find=_ties),
    Check(kinds=(MIXED, TRAINING), find=_modes),
    Check(kinds=(FROZEN,), find=_frozen),
    Check(kinds=(NO_NUMBERS, DEVICES, TYPES), find=_places),
)
