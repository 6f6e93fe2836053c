"""Do our multiply-accumulates and parameters agree with what torchvision publishes, for every classifier it publishes?

    python benchmarks/bench_flops.py [--only resnet] [--csv FILE]

One row per (architecture, crop) of the weights of torchvision's classification models: the figures of `meta["_ops"]`
and `meta["num_params"]`, ours, thop's, and CPU seconds for our whole per-module report. An agreement is a difference of
at most 1 %, or of half the last published digit (0.0005 GMACs). Exits 1 if ours disagrees anywhere.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torchvision.models import get_model_builder, get_model_weights, list_models

from inspector.architectures.types import ArchitectureSpec
from inspector.flops.count import count_costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One published figure beside ours. seconds: CPU time of building on meta and counting, without thop."""

    name: str
    crop: int
    published_gmacs: float
    our_gmacs: float
    thop_gmacs: float | None
    published_parameters: int
    our_parameters: int
    uncounted: int
    seconds: float

    @property
    def error(self) -> float:
        """Relative, signed."""
        return self.our_gmacs / self.published_gmacs - 1

    @property
    def agrees(self) -> bool:
        return _agree(self.our_gmacs, self.published_gmacs)


def _agree(ours: float, published: float) -> bool:
    return abs(ours - published) <= max(0.01 * published, 0.0005)


def published() -> list[tuple[str, int, float, int]]:
    """(architecture, crop, GMACs, parameters), one per architecture and crop: the newest weights of each."""
    import torchvision.models

    rows: dict[tuple[str, int], tuple[float, int]] = {}
    for name in list_models(module=torchvision.models):
        for weights in get_model_weights(get_model_builder(name)):
            transforms = weights.transforms()
            crop = transforms.crop_size
            rows[name, crop if isinstance(crop, int) else crop[0]] = (
                weights.meta["_ops"],
                weights.meta["num_params"],
            )
    return [(name, crop, gmacs, parameters) for (name, crop), (gmacs, parameters) in sorted(rows.items())]


def measure(name: str, crop: int, gmacs: float, parameters: int) -> Row:
    """Count one architecture, timed, and ask thop afterwards."""
    options: tuple[tuple[str, bool | int], ...] = ()
    if name == "googlenet":
        # Its published parameters are without the auxiliary classifiers.
        options = (("aux_logits", False),)
    elif name.startswith("vit_") and crop != 224:
        options = (("image_size", crop),)
    spec = ArchitectureSpec(library="torchvision", name=name, options=options)
    began = time.process_time()
    report = count_costs(spec, (3, crop, crop), second_opinion=False)
    seconds = time.process_time() - began
    opinion = count_costs(spec, (3, crop, crop)).second_opinions[0]
    return Row(
        name=name,
        crop=crop,
        published_gmacs=gmacs,
        our_gmacs=report.macs / 1e9,
        thop_gmacs=None if opinion.macs is None else opinion.macs / 1e9,
        published_parameters=parameters,
        our_parameters=report.parameters,
        uncounted=len(report.uncounted),
        seconds=seconds,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare our counts with torchvision's published figures.")
    parser.add_argument("--only", default="", help="architectures whose name contains this")
    parser.add_argument("--csv", type=Path, help="write the rows here")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")

    rows = []
    for name, crop, gmacs, parameters in published():
        if chosen.only not in name:
            continue
        row = measure(name, crop, gmacs, parameters)
        rows.append(row)
        flag = "" if row.agrees and row.our_parameters == row.published_parameters else "   <-- differs"
        thop = "failed" if row.thop_gmacs is None else f"{row.thop_gmacs:9.3f}"
        print(
            f"{row.name:20} {row.crop:4}  published {row.published_gmacs:9.3f}  ours {row.our_gmacs:9.3f} "
            f"({row.error:+.2%})  thop {thop}  {row.seconds:5.2f} s{flag}",
            flush=True,
        )
    if chosen.csv:
        with chosen.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(asdict(rows[0])))
            writer.writeheader()
            writer.writerows(asdict(row) for row in rows)

    right = sum(row.agrees for row in rows)
    parameters_right = sum(row.our_parameters == row.published_parameters for row in rows)
    theirs = sum(row.thop_gmacs is not None and _agree(row.thop_gmacs, row.published_gmacs) for row in rows)
    print(f"\n{len({row.name for row in rows})} architectures, {len(rows)} rows")
    print(f"MACs agree: ours {right} of {len(rows)}, thop {theirs} of {len(rows)}")
    print(
        f"parameters equal: {parameters_right} of {len(rows)}; rows with an uncounted operator: "
        f"{sum(row.uncounted > 0 for row in rows)}"
    )
    print(
        f"CPU seconds per report: median {statistics.median(r.seconds for r in rows):.2f}, "
        f"most {max(r.seconds for r in rows):.2f}, all {sum(r.seconds for r in rows):.1f}"
    )
    return 0 if right == parameters_right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
