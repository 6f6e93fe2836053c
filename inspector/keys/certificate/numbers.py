"""The certificate of one repaired state dict: the chains of its target, its vectors, and its kernels one at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from inspector.architectures.types import Target, TargetKind
from inspector.checkpoint.casts import has_numbers
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.raw_tensor import RawTensor
from inspector.errors import InspectorError
from inspector.installed import is_installed
from inspector.keys.certificate.examine import Examiner
from inspector.keys.certificate.from_names import wiring_by_order
from inspector.keys.certificate.types import Certificate, Wiring
from inspector.keys.certificate.verdicts import certify


def certificate_of(target: Target, read: Callable[[str], RawTensor | None]) -> Certificate | None:
    """What the batch norms of a state dict say of each tensor's place; None for a target without any.

    read: a tensor by the target's name, None for what stays at its initial value. Vectors are held, a kernel only
    while it is looked at. Numbers that are not finite, and tensors that are no plain real numbers, are left open.
    """
    if not any(t.name.rpartition(".")[2] == "running_mean" for t in target.tensors):
        return None
    wiring = _wiring_of(target)
    known = {t.name: t.shape for t in target.tensors if t.shape is not None}

    def vector(name: str) -> NDArray[np.float64] | None:
        if len(known.get(name, ())) != 1:
            return None
        numbers = _numbers(read(name))
        return None if numbers is None else numbers.astype(np.float64)

    # Values too large for what is summed here become infinite and are left open; they are no error of ours.
    with np.errstate(all="ignore"):
        examiner = Examiner(wiring, vector, known)
        for name in examiner.kernels:
            kernel = _numbers(read(name))
            if kernel is not None and kernel.ndim > 1 and kernel.shape == known.get(name):
                examiner.look(name, kernel)
    return certify(examiner, [t.name for t in target.tensors])


def _numbers(tensor: RawTensor | None) -> NDArray[np.generic] | None:
    if tensor is None or not has_numbers(tensor.dtype) or not DTYPES[tensor.dtype].floating:
        return None
    return tensor.numbers if "complex" not in tensor.dtype else None


def _wiring_of(target: Target) -> Wiring:
    """From one pass without values where the target is an architecture and torch is here; else the order tells."""
    if target.kind is TargetKind.ARCHITECTURE and target.spec is not None and is_installed("torch"):
        from inspector.keys.certificate.from_spec import wiring_of_spec

        try:
            wiring = wiring_of_spec(target.spec)
        except InspectorError:
            wiring = None
        if wiring is not None:
            return wiring
    return wiring_by_order(target)
