"""The layers of a state dict, with what became of each since initialisation, and other signs that it was trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from inspector.checkpoint.types import StateRole
from inspector.health.freshness import Freshness, Proof, Standing, freshness_of
from inspector.health.norms import batch_norms
from inspector.health.reached import Reached, begins_like_this, gradient_reached
from inspector.health.roles import LAYERS, Role
from inspector.health.screens import screens_of
from inspector.health.subject import Examined, Subject

_LAYERS = (*LAYERS, Role.EMBEDDING)
_CLAIMED = frozenset({Standing.FRESH, Standing.LIKELY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A module with weights of two or more dimensions.

    name: of its first weight. place: 0 for the first layer. freshness: of the first weight where all weights stand
    alike, else of one that moved. reached: what the vectors beside them tell of gradients.
    """

    module: str
    name: str
    place: int
    numel: int
    freshness: Freshness
    reached: Reached

    @property
    def standing(self) -> Standing:
        """What became of it."""
        return self.freshness.standing


def layers_of(subject: Subject) -> tuple[Layer, ...]:
    """In the state dict's order. Layers of which nothing can be told (few elements, constant) are left out."""
    found: list[Layer] = []
    known = screens_of(subject).freshness
    for module, tensors in subject.by_module.items():
        judged = _judged(subject, tensors, known)
        if not judged:
            continue
        standings = [freshness.standing for _, freshness in judged]
        worst = standings[0] if len(standings) == 1 else max(standings, key=list(Standing).index)
        freshness = judged[standings.index(worst)][1]
        reached = gradient_reached(subject, module) if worst in _CLAIMED else Reached.NOTHING
        standing = _standing(freshness, reached)
        found.append(
            Layer(
                module=module,
                name=judged[0][0].name,
                place=len(found),
                numel=sum(one.tensor.numel for one, _ in judged),
                freshness=freshness if standing is worst else replace(freshness, standing=standing),
                reached=reached,
            )
        )
    return tuple(found)


def _standing(freshness: Freshness, reached: Reached) -> Standing:
    """Of weights that look as they began: vectors beside them that moved say how much of that is to be believed."""
    standing = freshness.standing
    if standing not in _CLAIMED or reached is Reached.AT_REST:
        return standing
    # Steps may have been too short to move a weight, or to be seen in it.
    if reached is Reached.BARELY or (standing is Standing.LIKELY and reached is Reached.TRAINED):
        return Standing.UNSURE
    # An edge is no proof to the last bit.
    return Standing.LIKELY if freshness.proof is Proof.EDGE else standing


def _judged(
    subject: Subject, tensors: Sequence[Examined], known: Mapping[tuple[str, ...], Freshness | None]
) -> list[tuple[Examined, Freshness]]:
    found = []
    for one in tensors:
        t = one.statistics
        if one.role not in _LAYERS or t is None or len(t.shape) < 2 or not one.floating:
            continue
        # A filter of one number before a norm does nothing, whatever it is: it has no gradient.
        if t.numel == t.shape[0]:
            continue
        path = one.tensor.path
        freshness = known[path] if path in known else freshness_of(subject, one, t)
        if freshness is not None:
            found.append((one, freshness))
    return found


def trained_signs(subject: Subject, layers: Sequence[Layer]) -> int:
    """What tells of training besides the weights: an optimizer's state, batch norms that have seen data, scales and
    shifts of norms that are not as they begin, and biases likewise, beside weights not known to be fresh.

    1 as well where a file has none of them, so that nothing but the weights that moved can tell.
    """
    moved = {layer.module for layer in layers if layer.standing in (Standing.MOVED, Standing.UNSURE)}
    states = subject.checkpoint.state_dicts
    signs = sum(bool(state.tensors) for state in states if state.role is StateRole.OPTIMIZER)
    signs += sum(not norm.stats_default for norm in batch_norms(subject))
    asked = 0
    for one, t in subject.measured(Role.NORM_SCALE, Role.NORM_SHIFT, Role.BIAS):
        if one.role is Role.BIAS and one.module not in moved:
            continue
        asked += 1
        if t.minimum == t.maximum:
            continue
        if one.role is Role.NORM_SCALE:
            # Scales drawn at random around 1 (DCGAN) have a shift of nothing but zeros beside them.
            shift = next((o for o in subject.by_module[one.module] if o.role is Role.NORM_SHIFT), None)
            signs += shift is None or shift.statistics is None or shift.statistics.rms > 0
        else:
            signs += one.role is Role.NORM_SHIFT or not begins_like_this(subject, one, t)
    alone = not asked and any(layer.standing is Standing.MOVED for layer in layers)
    return max(signs, int(alone))
