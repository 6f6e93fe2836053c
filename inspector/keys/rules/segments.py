"""RoBERTa without segments: fairseq has no embedding for them, transformers has one, zeros in what its converter makes.

Zeros there add nothing, so the network stays what it was. The other way such rows are left out, if they are zero, and
the second name of the head's bias, if it is a copy; both are looked at when the plan is applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.keys.operations.drop_zeros import WHOLE
from inspector.keys.operations.fill_zeros import value_of
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Rule

_SEGMENTS = "roberta.embeddings.token_type_embeddings.weight"
_SECOND = "lm_head.decoder.bias"
# The head's bias as fairseq calls it, and so as the file's is read.
_BIAS = re.compile(r"(encoder|decoder)\.lm_head\.bias")


def _is_fairseq(left: Leftovers) -> tuple[bool, bool]:
    """Whether the file's names, and the target's, prove that code."""
    sides = left.writer, left.reader
    return sides[0] is not None and sides[0].id == "fairseq", sides[1] is not None and sides[1].id == "fairseq"


def _steps(left: Leftovers) -> Iterator[Step]:
    ours, theirs = _is_fairseq(left)
    if ours is theirs:
        return
    bias = next((link.source.name for link in left.settled if _BIAS.fullmatch(link.target.name)), "")
    for place in left.missing if ours else ():
        if place.name == _SEGMENTS and place.shape:
            dtype = next((t.dtype for t in left.target.tensors if t.name == place.name), None)
            says = "fairseq's RoBERTa has no segments: rows of zeros add nothing, as transformers' converter has them."
            yield _step(StepKind.FILL, None, place, says, value=value_of(dtype or "float32"))
    for leaf in left.extra if theirs else ():
        if leaf.name == _SEGMENTS and leaf.shape:
            says = "fairseq's RoBERTa has no segments: left out if its rows are zero."
            yield _step(StepKind.DROP, leaf, None, says, value=f"zeros:{WHOLE}", rows=(0, leaf.shape[0]))
        elif leaf.name == _SECOND and bias:
            says = "The head's bias has two names in transformers: left out if they are one, number for number."
            yield _step(StepKind.DROP, leaf, None, says, value="copy", beside=(bias,))


def _step(
    kind: StepKind,
    source: Leaf | None,
    place: Leaf | None,
    says: str,
    *,
    value: str,
    rows: tuple[int, int] = (0, 0),
    beside: tuple[str, ...] = (),
) -> Step:
    return Step(
        kind=kind,
        source=source.name if source is not None else None,
        target=place.name if place is not None else None,
        rule=RULE.id,
        reason=says,
        cost=Cost.LOSSLESS,
        evidence=Evidence.RULE,
        shape=place.shape if place is not None else None,
        value=value,
        rows=rows,
        beside=beside,
    )


RULE = Rule(
    id="segments",
    title="RoBERTa without segments",
    says=(
        "Fills transformers' segment embedding with zeros for fairseq's RoBERTa, which has none, or leaves it out "
        "where its rows are zero; leaves out the second name of the head's bias where it is a copy."
    ),
    cost=Cost.LOSSLESS,
    done="RoBERTa's segment embedding is zeros, or left out",
    steps=_steps,
)
