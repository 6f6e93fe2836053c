"""`check_loaded` over torchvision's networks: loaded, fresh, one pair of equal shapes exchanged, a new head.

    python benchmarks/bench_loaded.py            # twelve networks
    python benchmarks/bench_loaded.py resnet50   # these

Right answers are asserted: all tensors equal; none equal and none called another's; exactly the two exchanged ones; the
head alone. "told" is the share of weights of two and more dimensions of a fresh network that are proved to be at their
initialisation. Seconds are of the processor, the file's reading included. No other tool answers this question.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import torch
import torchvision
from torch import nn

from inspector import check_loaded
from inspector.loaded.report import Held

NETWORKS = (
    *("resnet18", "resnet50", "densenet121", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0"),
    *("shufflenet_v2_x0_5", "vgg11_bn", "convnext_tiny", "swin_t", "vit_b_32", "regnet_y_400mf"),
)


def _trained(net: nn.Module) -> nn.Module:
    random = torch.Generator().manual_seed(1)
    for tensor in net.state_dict().values():
        if tensor.is_floating_point():
            tensor.add_(torch.rand(tensor.shape, generator=random) * 0.05 + 0.01)
    return net.eval()


def _exchanged(state: dict[str, torch.Tensor]) -> tuple[str, str]:
    """Two weights of one shape."""
    shapes: dict[tuple[int, ...], str] = {}
    for name, tensor in state.items():
        if tensor.dim() > 1 and tensor.is_floating_point():
            if tuple(tensor.shape) in shapes:
                return shapes[tuple(tensor.shape)], name
            shapes[tuple(tensor.shape)] = name
    raise LookupError("no two weights of one shape")


def _measure(name: str, folder: Path) -> None:
    make = getattr(torchvision.models, name)
    torch.manual_seed(0)
    net = _trained(make(num_classes=10))
    state = {key: tensor.clone() for key, tensor in net.state_dict().items()}
    path = folder / f"{name}.pth"
    torch.save(state, path)
    start = time.process_time()
    loaded = check_loaded(net, path)
    seconds = time.process_time() - start
    assert loaded.holds and loaded.loaded == len(state), name

    start = time.process_time()
    fresh = check_loaded(make(num_classes=10), path)
    slowest = time.process_time() - start
    assert not fresh.of(Held.OTHER) and not fresh.of(Held.TRANSPOSED), name
    computed = sum(one.is_loaded for one in fresh.tensors)
    weights = [one for one in fresh.tensors if len(one.shape) > 1 and not one.is_buffer and one.held is not Held.EQUAL]
    told = sum(one.held is Held.INITIAL and one.proved for one in weights) / len(weights)

    one, other = _exchanged(state)
    net.load_state_dict({**state, one: state[other], other: state[one]})
    assert set(check_loaded(net, path).of(Held.OTHER)) == {one, other}, name
    head = make(num_classes=3)
    kept = {key: t for key, t in state.items() if head.state_dict()[key].shape == t.shape}
    head.load_state_dict(kept, strict=False)
    assert [f.id for f in check_loaded(head.eval(), path).findings] == ["left-out-by-shape"], name
    nbytes = path.stat().st_size
    print(f"{name:20} {len(state):5} {nbytes / 1e6:7.1f} MB {seconds:7.2f} s {slowest:7.2f} s {told:6.1%} {computed:4}")


def main() -> None:
    """A line per network."""
    torch.set_num_threads(1)
    print("network            tensors    file      loaded    fresh    told  equal though fresh (computed buffers)")
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or NETWORKS:
            _measure(name, Path(folder))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak memory {peak / 1e6:.2f} GB, torch and the networks included")


if __name__ == "__main__":
    main()
