"""A first convolution for another number of input channels.

To one channel: the filters are summed over the channels, which answers a grey picture as the old net answered it as
RGB. To several: each channel gets the mean filter, scaled so that equal channels give the old answer. Anything that
told the channels apart is lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Rule
from inspector.units import counted

_FEW_CHANNELS = 16


def _is_first(link: Link, left: Leftovers) -> bool:
    ours, theirs = link.source.shape, link.target.shape
    if not ours or not theirs or len(ours) != len(theirs) or len(ours) < 3:
        return False
    if ours[0] != theirs[0] or ours[2:] != theirs[2:] or not (ours[1] and theirs[1]):
        return False
    if left.target.first_convolutions:
        return link.target.name in left.target.first_convolutions
    # Without the architecture's word: only one tensor differs so, and from or to the channel counts of pictures.
    return max(ours[1], theirs[1]) <= _FEW_CHANNELS and 3 in (ours[1], theirs[1])


def _steps(left: Leftovers) -> Iterator[Step]:
    found = [link for link in left.reshaped if _is_first(link, left)]
    if len(found) > 1 and not left.target.first_convolutions:
        return
    for link in found:
        ours, theirs = (link.source.shape or ())[1], (link.target.shape or ())[1]
        way = "summed over them" if theirs == 1 else "averaged over them and scaled"
        yield Step(
            kind=StepKind.ADAPT,
            source=link.source.name,
            target=link.target.name,
            rule=RULE.id,
            reason=f"{counted(ours, 'input channel')} in the file, {theirs} in the target: the filters are {way}.",
            cost=Cost.LOSSY,
            evidence=Evidence.CHOSEN,
            shape=link.target.shape,
            value="spread-channels",
        )


RULE = Rule(
    id="first-convolution",
    title="Other input channels",
    says="Sums or spreads the first convolution's filters over another number of input channels.",
    cost=Cost.LOSSY,
    done="the first convolution is adapted to the input channels",
    steps=_steps,
)
