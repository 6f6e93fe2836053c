"""Does the map lie on the object, what does it cost beside other tools, and how much memory does it take?

    python benchmarks/bench_cam.py [--pictures 200] [--rounds 12] [--device cuda] [--only PART ...] [--csv FILE]

Parts: place, localise, layers, two, one, grids, eigen, ablation, memory, devices. grad-cam, captum and torchcam are
compared where they are installed (`pip install -e .[peers]`). Right answers are asserted before anything is timed.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.cam import devices, localise, memory, place, speed, two_shapes

# Fewer do not tell a share of 78 % from one of 52 %.
ENOUGH = 200


def places(options: argparse.Namespace) -> Iterable[localise.Place]:
    """Where heat lies, at the suggested layer."""
    found = shown(
        localise.localise(localise.SAMPLES, pictures=options.pictures, slow=options.slow, device=options.device)
    )
    if options.pictures < ENOUGH:
        print(f"What is clearly above what is asserted of {ENOUGH} pictures or more.")
    else:
        localise.clearly_above(found)
    return found


def shown(rows: Iterable[localise.Place]) -> list[localise.Place]:
    """Print them as they come."""
    found = []
    print(f"{'sample':<24} {'map':<48} {'model':<10} {'pictures':>8} {'in mask':>15} {'points':>15}")
    for row in rows:
        found.append(row)
        print(
            f"{row.sample:<24} {row.of:<48} {row.model:<10} {row.pictures:8d} "
            f"{row.energy:7.3f} ± {row.energy_error:.3f} {row.pointing:7.3f} ± {row.pointing_error:.3f}",
            flush=True,
        )
    return found


def choices(options: argparse.Namespace) -> Iterable[two_shapes.Choice]:
    """Which of two shapes the heat takes for the asked one."""
    found = []
    print(f"{'sample':<24} {'map':<22} {'pictures':>8} {'on asked':>15} {'asked':>15} {'other':>15}")
    for row in two_shapes.choose(
        localise.SAMPLES, pictures=options.pictures // 2, slow=options.slow // 2, device=options.device
    ):
        found.append(row)
        print(
            f"{row.sample:<24} {row.of:<22} {row.pictures:8d} {row.share:7.3f} ± {row.share_error:.3f} "
            f"{row.asked:7.3f} ± {row.asked_error:.3f} {row.other:7.3f} ± {row.other_error:.3f}",
            flush=True,
        )
    return found


def costs(rows: Iterable[speed.Cost]) -> Iterable[speed.Cost]:
    """Print them as they come."""
    found = []
    for row in rows:
        found.append(row)
        differs = "" if row.difference is None else f"{row.difference:.1e}"
        print(
            f"{row.what:<40} {row.who:<10} {row.maps:3d} {row.milliseconds:9.2f} ms {row.times:8.2f} x {differs:>8}",
            flush=True,
        )
    return found


def offsets(options: argparse.Namespace) -> Iterable[place.Offset]:
    """How far hot centres lie from where occlusion finds that the network looked, aligned and evenly spread."""
    found = []
    print(f"{'network':<20} {'layer':<12} {'down':>7} {'across':>7} {'evenly: down':>14} {'across':>7}")
    for row in place.measure(device=options.device):
        found.append(row)
        print(
            f"{row.network:<20} {row.layer:<12} {row.down:7.2f} {row.across:7.2f} {row.evenly_down:14.2f} "
            f"{row.evenly_across:7.2f}",
            flush=True,
        )
    place.assert_near(found)
    return found


def peaks(options: argparse.Namespace) -> Iterable[memory.Peak]:
    """Print them as they come; processor only."""
    found = []
    for row in memory.peaks():
        found.append(row)
        print(f"{row.model:<12} {row.who:<10} {row.whole:7.0f} MB in all {row.over:7.0f} MB beyond", flush=True)
    return found


def same_maps(options: argparse.Namespace) -> Iterable[devices.SameMaps]:
    """Every method on the processor and on the device that was asked for."""
    found: list[devices.SameMaps] = []
    if options.device == "cpu":
        print("Maps of two devices are compared with --device cuda.")
        return found
    print(f"{'network':<20} {'precision':<10} {'maps':>5} {'largest difference':>20} of")
    for row in devices.measure(options.device):
        found.append(row)
        print(f"{row.network:<20} {row.dtype:<10} {row.maps:5d} {row.difference:20.1e} {row.method}", flush=True)
    return found


PARTS: dict[str, Callable[[argparse.Namespace], Iterable[Any]]] = {
    "place": offsets,
    "localise": places,
    "layers": lambda o: shown(localise.by_layer(localise.SAMPLES, pictures=o.pictures, device=o.device)),
    "two": choices,
    "one": lambda o: costs(speed.one_map(o.rounds, o.device)),
    "grids": lambda o: costs(speed.grids(max(1, o.rounds // 4), o.device)),
    "eigen": lambda o: costs(speed.eigen(max(1, o.rounds // 4))),
    "ablation": lambda o: costs(speed.ablation(max(1, o.rounds // 6), o.device)),
    "memory": peaks,
    "devices": same_maps,
}


def main() -> None:
    """Run the parts and print a table of each."""
    parser = argparse.ArgumentParser(description="Where heat lies, and what maps cost beside other tools.")
    parser.add_argument("--pictures", type=int, default=200, help="for localise, half of them for two")
    parser.add_argument("--slow", type=int, default=50, help="of them for Score-CAM and occlusion")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--device", default="cpu", help='"cuda" where there is one; times are then wall times')
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    random.seed(0)
    groups = []
    for part in options.only:
        print(f"\n{part}")
        groups.append(list(PARTS[part](options)))
    if options.csv:
        with options.csv.open("w", newline="") as file:
            for group in (group for group in groups if group):
                table = csv.DictWriter(file, list(asdict(group[0])))
                table.writeheader()
                table.writerows(asdict(row) for row in group)


if __name__ == "__main__":
    main()
