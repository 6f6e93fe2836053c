"""The values of a tensor in a few numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.doctor.report import Statistics


def statistics_of(tensor: Tensor) -> Statistics | None:
    """In float64; of complex values their size. None on meta, of an empty tensor, and of what has no plain values."""
    if tensor.device.type == "meta" or tensor.layout is not torch.strided or tensor.numel() == 0:
        return None
    values = tensor.detach()
    if values.is_quantized:
        values = values.dequantize()
    values = values.abs() if values.is_complex() else values
    values = values.to(torch.float64)
    count = values.numel()
    zeros = 1.0 - int(torch.count_nonzero(values)) / count
    finite = torch.isfinite(values)
    if bool(finite.all()):
        nans = infinities = negative = 0
        kept = values
    else:
        nans = int(torch.isnan(values).sum())
        infinities, negative = int(torch.isposinf(values).sum()), int(torch.isneginf(values).sum())
        kept = values[finite]
    if kept.numel() == 0:
        same = max(nans, infinities, negative) == count
        return Statistics(
            minimum=None, maximum=None, mean=None, deviation=None, zeros=zeros, nans=nans, infinities=infinities,
            negative_infinities=negative, constant=same,
        )  # fmt: skip
    low, high = (float(value) for value in torch.aminmax(kept))
    return Statistics(
        minimum=low,
        maximum=high,
        mean=float(kept.mean()),
        deviation=float(kept.std(correction=0)),
        zeros=zeros,
        nans=nans,
        infinities=infinities,
        negative_infinities=negative,
        constant=low == high and kept.numel() == count,
    )
