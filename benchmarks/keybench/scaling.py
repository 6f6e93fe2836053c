"""Time of a diagnosis against the number of keys, up to the largest network of the index."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.keybench.architectures import architecture_of
from benchmarks.keybench.corruptions import CORRUPTIONS
from benchmarks.keybench.files import checkpoint_of
from benchmarks.keybench.numbers import fingerprints
from inspector.architectures.targets import target_of
from inspector.architectures.types import ArchitectureSpec
from inspector.keys.diagnose import diagnose

# One family from small to large: 3,108 keys in the last.
SIZES = ("resnet18", "resnet50", "resnetrs101", "resnetrs200", "resnetrs420")
KINDS = (
    "as it is",
    "module.",
    "net_G.enc.",
    "numbers + 1",
    "model. + ema_model.",
    "module. - 10 %",
    "dots removed",
    "semantic renames",
    "random modules and leaves",
    "opaque, in order",
    "opaque, shuffled",
    "1x1 convolution as Linear",
    "10 classes",
)
REPEATS = 3


class Timing(NamedTuple):
    """seconds: processor time, the middle of a few, by number of keys of the target."""

    corruption: str
    seconds: dict[int, float]


def timings() -> Iterator[Timing]:
    nets = [architecture_of(f"timm/{name}") for name in SIZES]
    # One small number per tensor would do, but shapes must be real.
    states = [fingerprints(net, 0) for net in nets]
    for corruption in CORRUPTIONS:
        if corruption.name not in KINDS:
            continue
        found = {}
        for net, state in zip(nets, states, strict=True):
            case = corruption.make(state, random.Random(0))
            if not case.file:
                continue
            checkpoint = checkpoint_of({name: tuple(tensor.shape) for name, tensor in case.file.items()})
            library, _, name = net.name.partition("/")
            target = target_of(ArchitectureSpec(library=library, name=name))
            taken = []
            for _ in range(REPEATS):
                started = time.process_time()
                diagnose(checkpoint, target)
                taken.append(time.process_time() - started)
            found[len(net.tensors)] = statistics.median(taken)
        yield Timing(corruption.name, found)
