"""Two files compared by hand, from the words of docs/compare.md alone: torch and safetensors read, numpy counts,
math.fsum adds up. Nothing of the package is imported.

    python tests/compare/plain_diff.py A B
"""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import torch
from safetensors.torch import load_file


def load(path: str) -> dict[str, torch.Tensor]:
    if path.endswith(".safetensors"):
        return load_file(path)
    held = torch.load(path, map_location="cpu", weights_only=True)
    return held.get("state_dict", held)


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def numbers(tensor: torch.Tensor) -> np.ndarray:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.contiguous().to(torch.float64).numpy().reshape(-1)


def measure(one: torch.Tensor, two: torch.Tensor) -> dict[str, object]:
    a, b = numbers(one), numbers(two)
    finite = np.isfinite(a) & np.isfinite(b)
    x, y = a[finite], b[finite]
    apart = np.abs(y - x)
    gone, kept = (y == 0) & (x != 0), (y != 0) & (x != 0)
    largest = None
    if apart.size and apart.max() > 0:
        places = np.flatnonzero(finite)
        at = int(places[int(apart.argmax())])
        largest = {"index": at, "a": float(a[at]), "b": float(b[at]), "size": float(apart.max())}
    both = np.isnan(a) & np.isnan(b)
    return {
        "n": int(a.size),
        "finite": int(finite.sum()),
        "equal": int(((a == b) | both).sum()),
        "zeroed": int(gone.sum()),
        "largest_zeroed": float(np.abs(x[gone]).max()) if gone.any() else None,
        "smallest_kept": float(np.abs(x[kept]).min()) if kept.any() else None,
        "sign_flips": int(((x > 0) & (y < 0) | (x < 0) & (y > 0)).sum()),
        "nan_a": int(np.isnan(a).sum()),
        "nan_b": int(np.isnan(b).sum()),
        "nan_both": int(both.sum()),
        "odd_equal": int((both | (np.isinf(a) & (a == b))).sum()),
        "infinite_a": int(np.isinf(a).sum()),
        "infinite_b": int(np.isinf(b).sum()),
        "largest": largest,
        "sum_a": math.fsum(x),
        "sum_b": math.fsum(y),
        "square_a": math.fsum(x * x),
        "square_b": math.fsum(y * y),
        "square_delta": math.fsum((y - x) ** 2),
        "dot": math.fsum(x * y),
    }


def relation(one: torch.Tensor | None, two: torch.Tensor | None) -> str:
    if one is None or two is None:
        return "added" if one is None else "removed"
    if one.shape != two.shape:
        return "reshaped"
    if one.dtype == two.dtype:
        return "same" if bits(one) == bits(two) else "changed"
    a, b = numbers(one), numbers(two)
    if np.array_equal(a, b, equal_nan=True):
        return "cast"
    floats = one.is_floating_point() and two.is_floating_point()
    if floats and (bits(one.to(two.dtype)) == bits(two) or bits(two.to(one.dtype)) == bits(one)):
        return "cast"
    if one.dtype is torch.float32 and two.dtype is torch.bfloat16:
        upper = (one.contiguous().view(torch.int32) >> 16).to(torch.int16)
        if torch.equal(upper, two.view(torch.int16)):
            return "truncated"
    return "changed"


def diff(first: str, second: str) -> dict[str, tuple[str, dict[str, object] | None]]:
    a, b = load(first), load(second)
    found: dict[str, tuple[str, dict[str, object] | None]] = {}
    for name in [*a, *(name for name in b if name not in a)]:
        said = relation(a.get(name), b.get(name))
        found[name] = (said, measure(a[name], b[name]) if said in ("cast", "truncated", "changed") else None)
    return found


if __name__ == "__main__":
    print(json.dumps(diff(sys.argv[1], sys.argv[2]), indent=1))
