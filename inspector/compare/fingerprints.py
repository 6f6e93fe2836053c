"""The heat strips of both files with their rows beside each other: a row for each pair of weights."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.compare.report import TensorDiff
from inspector.weights.fingerprint import fingerprint
from inspector.weights.report import Fingerprint, WeightsReport


def fingerprint_pairs(
    tensors: Sequence[TensorDiff], first: WeightsReport, second: WeightsReport
) -> tuple[Fingerprint, Fingerprint]:
    """In the first file's order; as many rows in both. first, second: of the two files' state dicts.

    What only one file has, or is in one of them no matrix of finite numbers, has no row.
    """
    pairs = [(tensor.a.name, tensor.b.name) for tensor in tensors if tensor.a is not None and tensor.b is not None]
    has_a = set(fingerprint(first, bins=2, only=[a for a, _ in pairs]).names)
    has_b = set(fingerprint(second, bins=2, only=[b for _, b in pairs]).names)
    kept = [(a, b) for a, b in pairs if a in has_a and b in has_b]
    return fingerprint(first, only=[a for a, _ in kept]), fingerprint(second, only=[b for _, b in kept])
