"""Tensors that ride along without being weights of the network: what they are, so that leaving them out is informed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.checkpoint.types import TensorInfo
from inspector.findings import Finding, Severity
from inspector.keys.remarks.entry import Remark, Seen, told
from inspector.units import counted

_MOMENTS = re.compile(r"^(.*?)[./_](adam_[mv]|exp_avg(?:_sq)?|Adam(?:_1)?|momentum_buffer|max_exp_avg_sq)$")
_LOSS = re.compile(
    r"(^|\.)(criterion|loss(es|_fn|_func)?|[a-z_]*metrics?|online_(eval|probe|class|linear|fine)[a-z_]*|(train|val|test)_(acc|f1|auroc)[a-z_]*)\."
)
_AUXILIARY = re.compile(r"(^|\.)(AuxLogits|aux[0-9]*|aux_classifier|auxiliary_head|aux_head)\.")
_PROJECTION = re.compile(
    r"(^|\.)(head\.(mlp|last_layer)|(dino|ibot)_head|projection_head|projector|predictor|prototypes)\."
)


def _moments(seen: Seen) -> Iterator[Finding]:
    found = []
    for tensor in seen.unused:
        match = _MOMENTS.match(tensor.name)
        sibling = seen.tensors.get(match[1]) if match else None
        if sibling is not None and sibling.shape == tensor.shape:
            found.append(tensor.name)
    if found:
        yield told(
            "optimizer-among-weights",
            Severity.INFO,
            f"{counted(len(found), 'tensor')} ({found[0]} first) are an optimizer's moments: each has a weight of "
            "the same "
            "name and shape beside it. No model has a place for them.",
            subjects=found,
            remedy="Leaving them out costs nothing but a warm restart of the training.",
        )


def _extra_states(seen: Seen) -> Iterator[Finding]:
    names = [*(t.name for t in seen.unused), *(() if seen.state.is_module else seen.state.others)]
    found = [n for n in names if n.rpartition(".")[2] == "_extra_state" and n not in seen.places]
    if found:
        yield told(
            "extra-state",
            Severity.NOTICE,
            f"{counted(len(found), 'module')} kept a private state ({found[0]} first), as TransformerEngine does "
            "for its "
            "float8 scales. It is no weight, and safetensors cannot hold it.",
            subjects=found,
            remedy="A model without it computes in its usual type; training in float8 finds its scales again.",
        )


def _unused(seen: Seen, kind: re.Pattern[str]) -> list[TensorInfo]:
    return [t for t in seen.unused if kind.search(t.name)]


def _losses(seen: Seen) -> Iterator[Finding]:
    if found := _unused(seen, _LOSS):
        yield told(
            "loss-or-metric",
            Severity.INFO,
            f"{counted(len(found), 'tensor')} ({found[0].name} first) belong to a loss, a metric or a probe that was "
            "trained beside the network, by their names.",
            subjects=[t.name for t in found],
            remedy="The network's answers do not depend on them.",
        )


def _branches(seen: Seen) -> Iterator[Finding]:
    if found := _unused(seen, _AUXILIARY):
        yield told(
            "auxiliary-branch",
            Severity.NOTICE,
            f"{counted(len(found), 'tensor')} ({found[0].name} first) are an auxiliary head, which helps while "
            "training and "
            "is not asked in evaluation.",
            subjects=[t.name for t in found],
            remedy="Leave it out, or build the model with it (aux_logits=True, aux_loss=True in torchvision).",
        )
    missing = [name for name in seen.lacking if _AUXILIARY.search(name)]
    if missing and len(missing) == len(seen.lacking):
        yield told(
            "auxiliary-branch",
            Severity.NOTICE,
            f"All that the file lacks is an auxiliary head ({counted(len(missing), 'tensor')}, {missing[0]} first).",
            subjects=missing,
            remedy="Build the model without it (aux_logits=False, aux_loss=False in torchvision).",
        )


def _projections(seen: Seen) -> Iterator[Finding]:
    if found := _unused(seen, _PROJECTION):
        yield told(
            "projection-head",
            Severity.NOTICE,
            f"{counted(len(found), 'tensor')} ({found[0].name} first) are the projection head of self-supervised "
            "training "
            "(DINO and its kin): it classifies nothing.",
            subjects=[t.name for t in found],
            remedy="Take the backbone, and train a head of your own.",
        )


MOMENTS = Remark(id="optimizer-among-weights", says="An optimizer's moments beside the weights.", find=_moments)
EXTRA_STATES = Remark(id="extra-state", says="Private states of modules.", find=_extra_states)
LOSSES = Remark(id="loss-or-metric", says="Tensors of a loss, a metric or a probe.", find=_losses)
BRANCHES = Remark(id="auxiliary-branch", says="An auxiliary head on one side only.", find=_branches)
PROJECTIONS = Remark(id="projection-head", says="A projection head of self-supervised training.", find=_projections)
