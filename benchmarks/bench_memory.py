"""Does the memory that we foresee on the meta device agree with what torch's CPU allocator hands out?

    python benchmarks/bench_memory.py [--only NAME ...]

Twelve networks, each for inference, for a step with Adam and for one with SGD and momentum. Measured: every allocation
that torch's profiler reports during one pass or step, added up in their order, on top of weights, buffers, input and
the optimizer's state. Exits 1 where the peaks differ by more than a tenth.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import torch
import torchvision
from torch.profiler import ProfilerActivity, profile

from inspector.flops.blank import to_meta
from inspector.flops.memory import peak_memory

NETWORKS = (
    *("alexnet", "vgg11", "resnet18", "resnet50", "densenet121", "mobilenet_v2", "efficientnet_b0", "convnext_tiny"),
    *("vit_b_32", "swin_t", "regnet_y_400mf", "inception_v3"),
)
OPTIMIZERS: dict[str, Any] = {
    "": None,
    "adam": lambda parameters: torch.optim.Adam(parameters),
    "sgd-momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
}


def measured(model: torch.nn.Module, picture: torch.Tensor, optimizer: str) -> int:
    """The peak of what is held, in bytes."""
    model.train(bool(optimizer))
    stepper = OPTIMIZERS[optimizer](model.parameters()) if optimizer else None

    def step() -> None:
        if stepper is None:
            with torch.no_grad():
                model(picture)
            return
        output = model(picture)
        sum(t.float().mean() for t in (output if isinstance(output, tuple) else (output,))).backward()
        del output
        stepper.step()
        stepper.zero_grad(set_to_none=True)

    # The optimizer's state is made by the first step.
    step()
    kept = [*model.parameters(), *model.buffers(), picture]
    if stepper is not None:
        kept += [value for state in stepper.state.values() for value in state.values() if torch.is_tensor(value)]
    now = peak = sum({t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in kept}.values())
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        step()
    events = [e for e in profiled.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return int(peak)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=NETWORKS)
    torch.manual_seed(0)
    apart = 0
    print(f"{'network':18}{'pass':14}{'foreseen MB':>12}{'measured MB':>12}{'ratio':>8}{'CPU s':>7}  peak at")
    for name in parser.parse_args().only:
        model = torchvision.models.get_model(name)
        for optimizer in OPTIMIZERS:
            side, batch = (299 if name == "inception_v3" else 224), (4 if optimizer else 8)
            picture = torch.rand(batch, 3, side, side)
            began = time.process_time()
            meta = to_meta(model, label=name)
            found = peak_memory(meta, (picture.to("meta"),), label=name, optimizer=optimizer)
            seconds = time.process_time() - began
            real = measured(model, picture, optimizer)
            ratio = found.peak_nbytes / real
            apart += abs(ratio - 1) > 0.1
            print(
                f"{name:18}{optimizer or 'inference':14}{found.peak_nbytes / 1e6:12.1f}{real / 1e6:12.1f}{ratio:8.3f}"
                f"{seconds:7.2f}  {found.at}",
                flush=True,
            )
    print(f"{apart} of {len(NETWORKS) * len(OPTIMIZERS)} differ by more than a tenth.")
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main())
