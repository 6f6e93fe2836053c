"""Tensors that ride along without being weights of the network: what they are, so that leaving them out is informed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.checkpoint.bookkeeping import EXTRA_STATE
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.keys.checks.entry import MOST_SUBJECTS, Context, NameRow, Side, by_names
from inspector.keys.placing.roles import AUXILIARY, LOSSES
from inspector.units import counted

OPTIMIZER_AMONG_WEIGHTS = FindingKind(
    "optimizer-among-weights", Severity.INFO, "An optimizer's moments beside the weights"
)
PRIVATE_STATE = FindingKind("extra-state", Severity.NOTICE, "Private states of modules")
LOSS_OR_METRIC = FindingKind("loss-or-metric", Severity.INFO, "Tensors of a loss, a metric or a probe")
AUXILIARY_BRANCH = FindingKind("auxiliary-branch", Severity.NOTICE, "An auxiliary head on one side only")
PROJECTION_HEAD = FindingKind("projection-head", Severity.NOTICE, "A projection head of self-supervised training")

_MOMENTS = re.compile(r"^(.*?)[./_](adam_[mv]|exp_avg(?:_sq)?|Adam(?:_1)?|momentum_buffer|max_exp_avg_sq)$")
# What is known by its name alone.
ROWS: tuple[NameRow, ...] = (
    NameRow(
        kind=LOSS_OR_METRIC,
        side=Side.UNUSED,
        pattern=LOSSES,
        says="{tensors} ({first} first) belong to a loss, a metric or a probe that was trained beside the network, by "
        "their names.",
        remedy="The network's answers do not depend on them.",
    ),
    NameRow(
        kind=AUXILIARY_BRANCH,
        side=Side.UNUSED,
        pattern=AUXILIARY,
        says="{tensors} ({first} first) are an auxiliary head, which helps while training and is not asked in "
        "evaluation.",
        remedy="Leave it out, or build the model with it (aux_logits=True, aux_loss=True in torchvision).",
    ),
    NameRow(
        kind=AUXILIARY_BRANCH,
        side=Side.LACKING,
        pattern=AUXILIARY,
        all_of_them=True,
        says="All that the file lacks is an auxiliary head ({tensors}, {first} first).",
        remedy="Build the model without it (aux_logits=False, aux_loss=False in torchvision).",
    ),
    NameRow(
        kind=PROJECTION_HEAD,
        side=Side.UNUSED,
        pattern=r"(^|\.)(head\.(mlp|last_layer)|(dino|ibot)_head|projection_head|projector|predictor|prototypes)\.",
        says="{tensors} ({first} first) are the projection head of self-supervised training (DINO and its kin): it "
        "classifies nothing.",
        remedy="Take the backbone, and train a head of your own.",
    ),
)


def _moments(context: Context) -> Iterator[Finding]:
    names = []
    for tensor in context.unused:
        match = _MOMENTS.match(tensor.name)
        sibling = context.tensors.get(match[1]) if match else None
        if sibling is not None and sibling.shape == tensor.shape:
            names.append(tensor.name)
    if names:
        yield OPTIMIZER_AMONG_WEIGHTS.found(
            f"{counted(len(names), 'tensor')} ({names[0]} first) are an optimizer's moments: each has a weight of the "
            "same name and shape beside it. No model has a place for them.",
            subjects=names[:MOST_SUBJECTS],
            remedy="Leaving them out costs nothing but a warm restart of the training.",
        )


def _private_states(context: Context) -> Iterator[Finding]:
    names = [*(t.name for t in context.unused), *(() if context.state.is_module else context.state.others)]
    states = [n for n in names if n.rpartition(".")[2] == EXTRA_STATE and n not in context.places]
    if states:
        yield PRIVATE_STATE.found(
            f"{counted(len(states), 'module')} kept a private state ({states[0]} first), as TransformerEngine does for "
            "its float8 scales. It is no weight, and safetensors cannot hold it.",
            subjects=states[:MOST_SUBJECTS],
            remedy="A model without it computes in its usual type; training in float8 finds its scales again.",
        )


CHECKS: tuple[Check[Context], ...] = (
    Check(kinds=(OPTIMIZER_AMONG_WEIGHTS,), find=_moments),
    Check(kinds=(PRIVATE_STATE,), find=_private_states),
    *(by_names(row) for row in ROWS),
)
