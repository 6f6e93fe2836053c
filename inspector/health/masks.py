"""Which tensors are attention masks by their values, whatever they are called: `tril`, `m`, a buffer named `bias`.

Of the names `roles.py` knows the usual ones. What a mask holds on purpose is an error in a weight.
"""

from __future__ import annotations

from dataclasses import replace

from inspector.checkpoint.masks import LEAST, is_causal_mask
from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject


def with_masks(subject: Subject) -> Subject:
    """The same, in which these have the role of a mask. Only what may be one by its counts is read again."""
    masks = {one.name for one in subject.tensors if may_be_mask(one) and _is_one(subject, one)}
    if not masks:
        return subject
    tensors = (replace(one, role=Role.MASK) if one.name in masks else one for one in subject.tensors)
    return replace(subject, tensors=tuple(tensors))


def may_be_mask(one: Examined) -> bool:
    """Whether its counts allow it: a second look at its numbers tells."""
    t, shape = one.statistics, one.tensor.shape
    if t is None or not one.floating or t.decoding is not None or one.role is Role.MASK:
        return False
    if t.nan or not t.zero or len(shape) < 2 or shape[-1] != shape[-2]:
        return False
    return t.zero + t.infinite == t.numel if t.infinite else t.minimum in LEAST and t.maximum == 0


def _is_one(subject: Subject, one: Examined) -> bool:
    numbers = subject.array(one)
    return numbers is not None and is_causal_mask(numbers)
