"""Whether a parameter has clearly left its initialisation: to hold against an optimizer that knows of no gradient."""

from __future__ import annotations

from dataclasses import replace

from inspector.health.freshness import Proof, Standing, freshness_of
from inspector.health.reached import begins_like_this
from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject, examined


def looking_at(subject: Subject, path: tuple[str, ...] | None) -> Subject | None:
    """The same for the state dict at that path; None where the file has none there."""
    if subject.state is not None and subject.state.path == path:
        return subject
    state = next((one for one in subject.checkpoint.state_dicts if one.path == path), None)
    if state is None:
        return None
    return replace(subject, state=state, tensors=examined(state.tensors, subject.measured_by_path))


def has_moved(subject: Subject, one: Examined) -> bool | None:
    """Whether no initialiser that is known makes such numbers; False where that cannot be told. None: one makes such a
    mean and spread, and torch's generator on a processor did not draw them."""
    t = one.statistics
    if t is None or not t.finite or t.minimum == t.maximum or not one.floating:
        return False
    if len(t.shape) >= 2:
        found = freshness_of(subject, one, t)
        if found is not None and found.standing is Standing.UNSURE and found.proof is Proof.SPREAD:
            return None
        return found is not None and found.standing is Standing.MOVED
    if one.role is Role.NORM_SCALE:
        # Scales may begin at random around 1 (DCGAN), shifts begin at 0.
        shift = next((other for other in subject.by_module[one.module] if other.role is Role.NORM_SHIFT), None)
        return shift is not None and shift.statistics is not None and shift.statistics.rms > 0
    if one.role is Role.BIAS:
        return not begins_like_this(subject, one, t)
    return one.role is Role.NORM_SHIFT
