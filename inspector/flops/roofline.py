"""On a device with so much arithmetic and so much bandwidth: what limits a layer, and how long it takes at least.

Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for Multicore Architectures", 2009. The
figures of the devices are their makers' for dense matrix products; bytes are counted as if nothing were fused, so the
time of what is limited by memory is an upper estimate of the least.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from inspector.errors import UsageError
from inspector.flops.report import CostReport, ModuleCost


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """flops: per second at its peak, for float32 as torch runs it by default. bandwidth: bytes per second."""

    name: str
    flops: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """FLOPs per byte above which arithmetic is the limit."""
        return self.flops / self.bandwidth


# Data sheets of NVIDIA: float32 outside tensor cores, which torch uses for it unless TF32 is allowed.
DEVICES = (
    Device(name="t4", flops=8.1e12, bandwidth=320e9),
    Device(name="v100", flops=15.7e12, bandwidth=900e9),
    Device(name="a10", flops=31.2e12, bandwidth=600e9),
    Device(name="a100", flops=19.5e12, bandwidth=2.039e12),
    Device(name="a100-tf32", flops=156e12, bandwidth=2.039e12),
    Device(name="h100", flops=67e12, bandwidth=3.35e12),
    Device(name="h100-tf32", flops=494.7e12, bandwidth=3.35e12),
    Device(name="l4", flops=30.3e12, bandwidth=300e9),
    Device(name="rtx-3090", flops=35.6e12, bandwidth=936e9),
    Device(name="rtx-4090", flops=82.6e12, bandwidth=1.008e12),
)
_OWN = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?):(\d+(?:\.\d+)?(?:e\d+)?)")


def find_device(text: str) -> Device:
    """By name, or "19.5e12:2.0e12" for FLOPs and bytes per second. Raises UsageError."""
    known = next((device for device in DEVICES if device.name == text.lower()), None)
    if known is not None:
        return known
    own = _OWN.fullmatch(text)
    if own and float(own[1]) > 0 and float(own[2]) > 0:
        return Device(name=text, flops=float(own[1]), bandwidth=float(own[2]))
    names = ", ".join(device.name for device in DEVICES)
    raise UsageError(
        f'No device is named "{text[:40]}".',
        hint=f"There are {names}; or FLOPs and bytes a second: 19.5e12:2e12.",
    )


def limit_of(cost: ModuleCost | CostReport, device: Device) -> str:
    """What a layer waits for: "arithmetic" or "memory", "" where it does neither."""
    moved = cost.read_nbytes + cost.written_nbytes
    if not moved:
        return ""
    return "arithmetic" if cost.flops / moved > device.ridge else "memory"


def least_seconds(report: CostReport, device: Device) -> float:
    """The time that one pass takes at least: each module's own work at the device's peak, one after the other."""
    return sum(
        max(2 * m.own_macs / device.flops, (m.own_read_nbytes + m.own_written_nbytes) / device.bandwidth)
        for m in report.modules
    )
