"""What is kept with an object goes when the object goes."""

from __future__ import annotations

import gc

from inspector.architectures.types import Target, TargetKind
from inspector.kept_with import KeptWith


def _target() -> Target:
    return Target(label="one", kind=TargetKind.KEYS, tensors=())


def test_a_value_is_made_once_for_each_object_and_goes_with_it() -> None:
    made: list[int] = []
    kept: KeptWith[Target, str] = KeptWith(lambda target: made.append(id(target)) or target.label)
    first, equal = _target(), _target()
    assert kept.of(first) == kept.of(first) == "one"
    assert len(made) == 1
    # Equal is not the same.
    kept.of(equal)
    assert len(made) == 2 and len(kept) == 2
    del first
    gc.collect()
    assert len(kept) == 1
