"""From a checkpoint to a model that runs: recognised or named, repaired where its keys need it, strictly loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.architectures.recognise import recognise
from inspector.architectures.targets import target_of_candidate
from inspector.architectures.types import Recognition, Target, TargetKind
from inspector.cam.runs import ReadyModel
from inspector.cam.targets.answers import stated_answer
from inspector.checkpoint.training_place import place_of
from inspector.checkpoint.types import Checkpoint, StateDict, StateRole
from inspector.errors import UnknownArchitecture, UsageError
from inspector.installed import require
from inspector.keys.apply import state_of
from inspector.keys.runnable import plan_to_run, say_placed

if TYPE_CHECKING:
    from torch import nn

_MODELS = (StateRole.WEIGHTS, StateRole.EMA)


def ready_model(
    checkpoint: Checkpoint,
    target: Target | None = None,
    *,
    state: StateDict | None = None,
    recognition: Recognition | None = None,
    own: nn.Module | None = None,
) -> ReadyModel:
    """The file's model with its weights, ready for `explain`, and what is known of its use.

    target: what to build, None for the recognised architecture; a `code:` target runs that code. state: which state
    dict, None for the likeliest. recognition: of that state dict, where it is at hand. own: what a `code:` target
    built, where it has run.
    Raises UnknownArchitecture where nothing can be built, KeysDoNotFit where weights would be missing or wrong: such a
    model would explain nothing. MissingLibrary without torch.
    """
    require("torch", "Running a model")
    from inspector.architectures.own_model import model_of_code
    from inspector.cam.inputs.classes import class_names
    from inspector.cam.inputs.preprocess import infer_preprocessing
    from inspector.keys.apply import load_into, load_repaired

    name = checkpoint.origin.name
    recognition = recognition or recognise(checkpoint, state)
    if target is None:
        if recognition.best is None:
            raise UnknownArchitecture(
                f"{name} was not recognised, so there is no model to run.",
                hint="Name a model of torchvision or timm as target, or your own code: code:model.py:build.",
            )
        target = target_of_candidate(recognition.best)
    if target.spec is None and target.kind is not TargetKind.CODE:
        raise UsageError(
            f"{target.label} cannot be built, so it cannot be run.",
            hint="Name an architecture as target, or your own code: code:model.py:build.",
        )
    plan = plan_to_run(checkpoint, target, state)
    if target.spec is not None:
        model = load_repaired(checkpoint, plan, target.spec)
    else:
        model = load_into(own if own is not None else model_of_code(target.label), checkpoint, plan)
    chosen = state_of(checkpoint, plan)
    taken = {chosen.path} if not chosen.gathered else {part.path for part in chosen.gathered}
    others = [
        s.label
        for s in checkpoint.state_dicts
        if s.path not in taken and s.role in _MODELS and 2 * len(s.tensors) >= len(chosen.tensors)
    ]
    return ReadyModel(
        name=name,
        sha256=checkpoint.origin.sha256 or "",
        model=model,
        recognition=recognition,
        architecture=target.label,
        preprocessing=infer_preprocessing(recognition, checkpoint, spec=target.spec),
        class_names=class_names(recognition, checkpoint),
        answer=stated_answer(checkpoint),
        place=place_of(checkpoint),
        weights=chosen.label,
        others=tuple(others),
        loaded=say_placed(plan),
    )
