"""Tensors that the target has no place for: a loss's weights, an auxiliary head, a detector around a backbone.

Weights that lie inside of blocks whose other weights are placed are something else: attention in every block of a
network whose target has none. Leaving these out changes what each block computes, so that is asked first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from inspector.keys.placing.roles import roles_of
from inspector.keys.placing.tree import Leaf, numbered
from inspector.keys.report import Ambiguity, Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Rule
from inspector.units import counted, human_shape

BESIDE, COMPUTES = "beside", "computes"
# Adapters and quantisers lie inside of blocks and are meant to come off.
_ADDED = re.compile(r"(^|[._])(lora|adapter|loha|lokr|hada|ia3|observer|fake_quant|act_quant)", re.IGNORECASE)
# One odd weight in one block is no other network.
_LEAST = 2


def _steps(left: Leftovers) -> Iterator[Step]:
    inner = _inside(left.extra, left.settled)
    kept = set(inner) if len(inner) >= _LEAST and _ask(inner, left) == COMPUTES else set()
    for leaf in left.extra:
        if leaf.name not in kept:
            yield Step(
                kind=StepKind.DROP,
                source=leaf.name,
                target=None,
                rule=RULE.id,
                reason=f"The target has no place for {leaf.name} ({human_shape(leaf.shape or ())}).",
                cost=Cost.LOSSY,
                evidence=Evidence.CHOSEN,
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
    says="Leaves out tensors that the target has no place for; of weights inside placed blocks it asks first.",
    cost=Cost.LOSSY,
    done="{tensors} without a place {are} left out",
    drops_unplaced=True,
    steps=_steps,
)
