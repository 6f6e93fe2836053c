"""Peak memory of one Grad-CAM map, every tool in a process of its own.

python -m benchmarks.cam.memory WHO MODEL LAYER    prints the peak in megabytes, of the whole process and beyond what it
had with the model built and the tool imported.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS = (("vgg16", "features.29"), ("resnet50", "layer4"))
WHO = ("inspector", "captum", "torchcam", "grad-cam")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """Megabytes. whole: of the process. over: beyond the built model and the imports."""

    model: str
    who: str
    whole: float
    over: float


def peaks() -> Iterator[Peak]:
    """Every tool that is installed on every model."""
    for model, layer in MODELS:
        for who in WHO:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.cam.memory", who, model, layer],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                print(f"{who} is not measured: {done.stderr.strip().splitlines()[-1]}")
                continue
            whole, over = map(float, done.stdout.split()[-2:])
            yield Peak(model=model, who=who, whole=whole, over=over)


def main(who: str, name: str, path: str) -> None:
    """Measure one."""
    import torch

    from benchmarks.cam.contestants import one, untrained
    from inspector.cam.layers.proposals import find_layer

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, x = untrained(name, 10), torch.randn(1, 3, 224, 224)
    run = one(who, model, find_layer(model, path, (3, 224, 224)), x)
    before = _megabytes("VmRSS")
    found = run()
    assert found is not None and bool(found.isfinite().all())
    # VmHWM and not ru_maxrss: the latter remembers the parent's memory from before exec.
    whole = _megabytes("VmHWM")
    print(f"{whole:.0f} {whole - before:.0f}")


def _megabytes(field: str) -> float:
    """Resident: VmRSS now, VmHWM at most."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"/proc/self/status has no {field}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
