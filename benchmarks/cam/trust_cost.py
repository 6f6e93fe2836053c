"""What measuring a map was announced to take, and what it took: two samples, two networks of torchvision.

    python -m benchmarks.cam.trust_cost

One run each on one thread, in processor time, the announced too: on a busy machine wall time tells of the neighbours.
torchvision's networks have random weights: nothing is fetched.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from unittest.mock import patch

import torch
from torch import Tensor, nn

from benchmarks.cam.localise import load
from inspector.cam.layers.proposals import propose_layers
from inspector.cam.trust.assess import assess, cost
from inspector.cam.trust.making import Maker

SAMPLES = ("shapes.safetensors", "shapes_vit.safetensors")
NETWORKS = ("resnet18", "vit_b_16")


def subjects() -> Iterator[tuple[str, nn.Module, Tensor]]:
    """(name, model, one prepared picture)."""
    from torchvision.models import get_model

    for name in SAMPLES:
        # One picture is too few to tell whether the sample answers rightly.
        subject = load(name, 8, "cpu")
        yield name, subject.trained, subject.batch[:1]
    for name in NETWORKS:
        torch.manual_seed(0)
        yield name, get_model(name, weights=None).eval(), torch.randn(1, 3, 224, 224)


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'model':<24} {'announced':>10} {'took':>8}")
    for name, model, picture in subjects():
        layer = propose_layers(model, tuple(picture.shape[1:]))[0]
        maker = Maker(method="grad-cam", layers=(layer,))
        with patch.object(time, "perf_counter", time.process_time):
            announced = cost(model, picture, maker)
        start = time.process_time()
        assess(model, picture, maker, timed=announced.pace)
        print(f"{name:<24} {announced.seconds:9.1f}s {time.process_time() - start:7.1f}s", flush=True)


if __name__ == "__main__":
    main()
