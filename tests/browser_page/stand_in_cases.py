"""What the stand-in for NumPy and NumPy itself are asked: the program prints its answers, and two runs are compared."""

from __future__ import annotations

import json
import random
import struct

import numpy as np
from numpy.lib.stride_tricks import as_strided


def _bytes(count: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(count)


def _told(made: object) -> object:
    if isinstance(made, np.ndarray):
        return [made.dtype.name, list(made.shape), made.tobytes().hex()]
    return made


def cases() -> dict[str, object]:
    """By name: each is an array or a plain value."""
    raw = _bytes(240, 1)
    found: dict[str, object] = {}
    for name in ("<f4", ">f4", "<u2", ">u2", "u1", "<i8", "<f8", "<f2", ">i4"):
        held = np.frombuffer(raw, dtype=name)
        found[f"swap {name}"] = held.astype(np.dtype(name).newbyteorder("<"), copy=False)
        found[f"reversed {name}"] = np.ascontiguousarray(held[::-1])
        found[f"every third {name}"] = np.ascontiguousarray(held[1::3])
    block = np.frombuffer(raw, dtype="<u2").reshape(2, 3, 4, 5)
    for axes in ((3, 2, 1, 0), (0, 2, 1, 3), (1, 0, 3, 2)):
        found[f"turned {axes}"] = np.ascontiguousarray(block.transpose(axes))
        found[f"turned and cut {axes}"] = block.transpose(axes)[:1].copy()
    found["flipped"] = np.flip(block, (1, 3)).copy()
    found["rows"] = block[0][[2, 0]]
    found["columns"] = np.ascontiguousarray(block[:, 1:3])
    found["joined"] = np.concatenate([block, block[:, ::-1]], 1)
    found["strided"] = np.ascontiguousarray(as_strided(block.reshape(-1), (4, 3), (6, 2)))
    found["repeated"] = np.ascontiguousarray(as_strided(block.reshape(-1)[3:], (2, 3), (0, 2)))
    found["in order"] = [
        block.flags.c_contiguous,
        block.transpose(1, 0, 2, 3).flags.c_contiguous,
        block[:, :1].flags.c_contiguous,
    ]
    found["as bytes"] = block.view(np.uint8)
    written = np.zeros((3, 4), np.uint16)
    written[1:, ::2] = block[0, 0, :2, :2]
    found["written"] = written
    odd = [0.0, -0.0, 1.5, -2.25, 65504.0, 1e-30, float("inf"), float("-inf"), float("nan"), 3.4e38, -1e-45]
    for code in ("e", "f", "d"):
        packed = b"".join(
            struct.pack(
                f"<{code}", one if code != "e" or abs(one) < 65520 or one in (float("inf"), float("-inf")) else 1.0
            )
            for one in odd
        )
        held = np.frombuffer(packed, dtype={"e": "<f2", "f": "<f4", "d": "<f8"}[code])
        found[f"finite {code}"] = np.isfinite(held)
        found[f"first that is not finite {code}"] = int(np.argmax(~np.isfinite(held)))
        found[f"zero {code}"] = np.equal(held, 0)
        found[f"least {code}"] = np.isneginf(held) | np.isin(held, (-65504.0, float(held[0]), -1e30))
        found[f"how many finite {code}"] = int(np.isfinite(held).sum())
        found[f"nan {code}"] = np.isnan(held)
        found[f"below zero {code}"] = np.less(held, 0)
        found[f"any below zero {code}"] = bool(np.less(held, 0).any())
        found[f"wide {code}"] = held.astype(np.float64) if code != "d" else held
        found[f"equal {code}"] = [np.array_equal(held, held), np.array_equal(held, held, equal_nan=True)]
    half = np.frombuffer(raw, dtype="<u2")
    found["bfloat16 to float32"] = (half.astype(np.uint32) << np.uint32(16)).view(np.float32).view(np.uint32)
    many = np.frombuffer(_bytes(4_000, 2), dtype="<f4")
    found["finite of many"] = int(np.isfinite(many).sum())
    small = np.arange(12, dtype=np.float32).reshape(3, 4)
    found["sums"] = [
        float(small.sum(dtype=np.float64)),
        int(np.arange(12).sum()),
        float(small.max()),
        float(small.min()),
    ]
    found["compared"] = small[1:] > small[:-1]
    found["added"] = small + small[0]
    found["less one"] = small - 1
    found["counted"] = [int(np.count_nonzero(small)), np.flatnonzero(small == 3).tolist()]
    found["triangle"] = np.triu(small, 1)
    found["diagonal"] = np.diagonal(small) == 1
    found["full"] = np.full((2, 3), 1.5, np.float32)
    found["ones"] = np.ones((2, 2), dtype=np.float32)
    found["tri"] = np.tri(3, 4, dtype=np.float32)
    for sizes in ((1 << 40, 1 << 40), (0, 1 << 62, 4)):
        try:
            np.empty(sizes, "u1")
            found[f"impossible {sizes}"] = "made"
        except ValueError:
            found[f"impossible {sizes}"] = "refused"
    return {name: _told(made) for name, made in found.items()}


if __name__ == "__main__":
    print(json.dumps(cases()))
