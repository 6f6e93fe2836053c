"""Are the maps of a GPU those of the processor? Every method, untrained networks, double and single precision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.cam.contestants import TARGET, loud, stretched
from inspector.cam.engine.maps import heat_maps
from inspector.cam.methods import METHODS
from inspector.errors import InspectorError

NETWORKS = ("resnet18", "mobilenet_v3_small", "densenet121", "convnext_tiny", "vit_b_16", "swin_t")
SIDE = 128
# In double precision two devices differ by the order of their sums; torch's own hard-swish by 1.2e-7 of 4.
MOST = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class SameMaps:
    """difference: the largest over the methods, of maps stretched to 0..1, and whose it is. maps: methods that give a
    map there that is not all one value; the others say the same on both devices."""

    network: str
    dtype: str
    maps: int
    difference: float
    method: str


def measure(device: str) -> Iterator[SameMaps]:
    """One row for each network and precision."""
    for network in NETWORKS:
        for dtype in (torch.float64, torch.float32):
            found: dict[str, float] = {}
            for method in (m.id for m in METHODS):
                torch.manual_seed(0)
                model, x = loud(_untrained(network)).to(dtype), torch.randn(1, 3, SIDE, SIDE, dtype=dtype)
                here = _map(model, x, method)
                there = _map(model.to(device), x.to(device), method)
                if isinstance(here, str) or isinstance(there, str):
                    assert here == there, (network, method, here, there)
                elif here.any() or there.any():
                    found[method] = float((here - there).abs().max())
            worst = max(found, key=lambda method: found[method])
            row = SameMaps(
                network=network,
                dtype=str(dtype).removeprefix("torch."),
                maps=len(found),
                difference=found[worst],
                method=worst,
            )
            yield row
            # Single precision is shown, not asserted: torch multiplies in TF32 where nobody forbids it.
            assert dtype is torch.float32 or row.difference <= MOST, sorted(found.items(), key=lambda item: -item[1])


def _untrained(name: str) -> nn.Module:
    from torchvision.models import get_model

    side = {"image_size": SIDE} if name.startswith("vit") else {}
    return get_model(name, weights=None, num_classes=10, **side).eval()


def _map(model: nn.Module, x: Tensor, method: str) -> Tensor | str:
    try:
        heat = heat_maps(model, x, targets=TARGET, method=method).heat[0].detach().double().cpu()
    except InspectorError as error:
        return str(error)
    return stretched(heat) if heat.max() > heat.min() else torch.zeros_like(heat)
