"""Position embeddings of another picture size: [1, 1 + 14 * 14, 768] where the target has [1, 1 + 24 * 24, 768].

The grid is resized as a picture, which vision transformers are fine-tuned from; the numbers are new ones, so it is
lossy. One token more or less is no other grid, and is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from inspector.keys.placing.roles import split_name
from inspector.keys.report import Cost, Step
from inspector.keys.rules.entry import Leftovers, Link, Rule, adapt

NAMES = ("pos_embed", "pos_embedding", "position_embeddings", "position_embedding", "positional_embedding")
_MOST_TOKENS = 2


def _tokens(link: Link) -> int | None:
    """How many class tokens stand before the grid on both sides, None when these are no grids or it is not clear."""
    ours, theirs = link.source.shape or (), link.target.shape or ()
    if len(ours) != 3 or len(theirs) != 3 or ours[0] != 1 or ours[::2] != theirs[::2] or ours[1] == theirs[1]:
        return None
    if split_name(link.target.name)[1] not in NAMES:
        return None
    found = [k for k in range(_MOST_TOKENS + 1) if is_square(ours[1] - k) and is_square(theirs[1] - k)]
    return found[0] if len(found) == 1 else None


def is_square(number: int) -> bool:
    return number > 1 and math.isqrt(number) ** 2 == number


def _steps(left: Leftovers) -> Iterator[Step]:
    found = [(link, tokens) for link in left.reshaped if (tokens := _tokens(link)) is not None]
    if len(found) != 1:
        return
    link, tokens = found[0]
    old, new = (math.isqrt((x.shape or (0, 0, 0))[1] - tokens) for x in (link.source, link.target))
    says = f"A grid of {old} x {old} in the file, of {new} x {new} in the target: resized bicubically."
    yield adapt(link, rule=RULE.id, reason=says, value=f"resize-grid:{tokens}")


RULE = Rule(
    id="position-grid",
    title="Other picture size",
    says="Resizes the grid of a vision transformer's position embeddings to another picture size.",
    cost=Cost.LOSSY,
    done="the position embeddings are resized",
    steps=_steps,
)
