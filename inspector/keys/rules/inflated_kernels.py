"""Convolutions over pictures in the file, over films in the target: inflated as I3D was from ImageNet's networks.

Each kernel is repeated over the frames and divided by their number, so that a film of equal frames gets the picture's
answer. That is where such a network begins to be trained, and no more: it needs consent. All kernels of another number
of axes must differ so; where another shape differs, it is another network.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.report import Cost, Step
from inspector.keys.rules.entry import Leftovers, Link, Rule, adapt

_MOST_FRAMES = 64


def _is_inflated(link: Link) -> bool:
    ours, theirs = link.source.shape or (), link.target.shape or ()
    return len(ours) == 4 and len(theirs) == 5 and ours == (*theirs[:2], *theirs[3:]) and 0 < theirs[2] <= _MOST_FRAMES


def _steps(left: Leftovers) -> Iterator[Step]:
    found = [link for link in left.reshaped if len(link.source.shape or ()) != len(link.target.shape or ())]
    if not all(_is_inflated(link) for link in found):
        return
    for link in found:
        frames = (link.target.shape or ())[2]
        reason = (
            f"A kernel over pictures in the file, over {frames} frames in the target: repeated, divided by {frames}."
        )
        yield adapt(link, rule=RULE.id, reason=reason, value="inflate")


RULE = Rule(
    id="inflated-kernels",
    title="Kernels over films",
    says="Repeats a two-dimensional convolution's kernel over the frames of a three-dimensional one, divided by them.",
    cost=Cost.LOSSY,
    done="kernels over pictures are repeated over frames",
    steps=_steps,
)
