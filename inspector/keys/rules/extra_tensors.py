"""Tensors that the target has no place for: a loss's weights, an auxiliary head, a detector around a backbone.

Where names prove that the target computes with none of them, nobody is asked: it is one whole module of the file and
they lie beside it (`placing/whole_module.py`), or they are a loss's, or an auxiliary head's.
Weights that lie inside of blocks whose other weights are placed are something else: attention in every block of a
network whose target has none. Leaving these out changes what each block computes, so that is asked first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.keys.placing.roles import LOSSES, roles_of, split_name
from inspector.keys.placing.tree import Leaf, numbered, stands_around
from inspector.keys.placing.whole_module import lies_beside
from inspector.keys.report import Ambiguity, Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Rule
from inspector.units import counted, human_shape

BESIDE, COMPUTES = "beside", "computes"
# Adapters and quantisers lie inside of blocks and are meant to come off.
_ADDED = re.compile(r"(^|[._])(lora|adapter|loha|lokr|hada|ia3|observer|fake_quant|act_quant)", re.IGNORECASE)
# What no network computes with when it is evaluated; what is called aux alone may be an input's branch. torch.ao's
# observers (torch/ao/quantization/observer.py, fake_quantize.py) watch a network, and a float one has none.
_NEVER_ASKED = re.compile(
    LOSSES
    + r"|(^|\.)(AuxLogits|aux[0-9]+|aux_classifier|auxiliary_head|aux_head)\."
    + r"|(^|\.)(\w+_)?(activation_post_process|weight_fake_quant)(_[0-9]+)?\.(\w+\.)?"
    + r"(scale|zero_point|eps|min_vals?|max_vals?|fake_quant_enabled|observer_enabled|histogram)$"
)
# What a masked autoencoder has behind its encoder, and its encoder alone does without (facebookresearch/mae,
# models_mae.py): its own names, and the token that stands for what is masked.
_DECODER = re.compile(r"(^|\.)(decoder_(embed|pos_embed|blocks|norm|pred)(\.|$)|mask_token$)")
_MASK_TOKEN = "mask_token"
# One odd weight in one block is no other network.
_LEAST = 2


def _steps(left: Leftovers) -> Iterator[Step]:
    inner = _inside(left.extra, left.settled)
    kept = set(inner) if len(inner) >= _LEAST and _ask(inner, left) == COMPUTES else set()
    proved = not kept and _takes_no_part(left)
    for leaf in left.extra:
        if leaf.name not in kept:
            why = f"The target has no place for {leaf.name} ({human_shape(leaf.shape or ())})"
            yield Step(
                kind=StepKind.DROP,
                source=leaf.name,
                target=None,
                rule=RULE.id,
                reason=f"{why}, and computes nothing with it." if proved else f"{why}.",
                cost=Cost.LOSSLESS if proved else Cost.LOSSY,
                evidence=Evidence.RULE if proved else Evidence.CHOSEN,
                declared=proved,
            )


def _takes_no_part(left: Leftovers) -> bool:
    """Whether names prove that the target, which is whole, would compute nothing with what is left over."""
    if left.missing or left.reshaped or not left.settled:
        return False
    links = [(x.source, x.target) for x in left.settled if not is_bookkeeping(x.target.name)]
    others = [leaf for leaf in left.extra if not _NEVER_ASKED.search(leaf.name)]
    if not others or _is_masked_autoencoders(others, left):
        # All else has its own name, but for what stands around all of it.
        around = stands_around(links)
        return len(around) == 1 and () in next(iter(around))
    # A tensor for each module (row_scale.fc1) is worked with, wherever it lies.
    modules = {split_name(place.name)[0] for _, place in links} - {""}
    if any(leaf.name.partition(".")[2] in modules for leaf in others):
        return False
    return all(link.evidence in (None, Evidence.RULE) for link in left.settled) and lies_beside(links, others)


def _is_masked_autoencoders(others: Sequence[Leaf], left: Leftovers) -> bool:
    """Whether it is all the decoder of a masked autoencoder, for a target that has none."""
    return (
        any(split_name(leaf.name)[1] == _MASK_TOKEN for leaf in others)
        and all(_DECODER.search(leaf.name) for leaf in others)
        and not any("decoder" in place.name or place.name.endswith(_MASK_TOKEN) for place in left.target.tensors)
    )


def _inside(extra: Sequence[Leaf], settled: Sequence[Link]) -> list[str]:
    """Matrices and kernels among the extra tensors whose numbered block has placed ones."""
    if not extra:
        return []
    placed = {block for link in settled if len(link.source.shape or ()) > 1 for block in _blocks(link.source.name)[-1:]}
    found = []
    for leaf, role in zip(extra, roles_of(extra), strict=True):
        is_matrix = role == "weight" and len(leaf.shape or ()) > 1
        if is_matrix and not _ADDED.search(leaf.name) and placed.intersection(_blocks(leaf.name)):
            found.append(leaf.name)
    return found


def _blocks(name: str) -> list[str]:
    """The numbered modules around a tensor that have a module inside, from the outermost."""
    segments = name.split(".")
    return [".".join(segments[: i + 1]) for i, s in enumerate(segments[:-2]) if numbered(s) is not None]


def _ask(inner: Sequence[str], left: Leftovers) -> str | None:
    return left.questions.ask(
        Ambiguity(
            id="inner-parts",
            question=(
                f"{counted(len(inner), 'weight')} without a place lie inside of blocks whose other weights are placed, "
                f"{inner[0]} first. Do the blocks compute with them?"
            ),
            options=(
                (COMPUTES, "yes: this is another network than the target"),
                (BESIDE, "no: something beside the network put them there, and they can come off"),
            ),
        ),
        place=inner[0].rpartition(".")[0],
    )


RULE = Rule(
    id="extra-tensors",
    title="Tensors without a place",
    says=(
        "Leaves out tensors that the target has no place for; of weights inside placed blocks it asks first. Needs no "
        "consent where the target is one whole module of the file, or what is left over is a loss's or an auxiliary "
        "head's by its names."
    ),
    cost=Cost.LOSSY,
    done="{tensors} without a place {are} left out",
    drops_unplaced=True,
    steps=_steps,
)
