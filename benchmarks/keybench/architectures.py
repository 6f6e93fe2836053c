"""The networks of the benchmark, and which of them are held out.

A held-out architecture and a held-out seed are never looked at while the engine is changed: their figures are reported
apart. The split is drawn once, from the sorted names, by the seeds written here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from benchmarks.keybench.templates import TEMPLATES
from inspector.architectures.index import load_index
from inspector.architectures.targets import target_of
from inspector.architectures.types import ArchitectureSpec, TargetTensor

# Pictures of this size, as small as the network lets them be.
NAMED: Mapping[str, int] = {
    "torchvision/resnet18": 64,
    "torchvision/resnet50": 64,
    "torchvision/resnext50_32x4d": 64,
    "torchvision/densenet121": 64,
    "torchvision/vgg11_bn": 64,
    "torchvision/alexnet": 64,
    "torchvision/mobilenet_v2": 64,
    "torchvision/mobilenet_v3_small": 64,
    "torchvision/mnasnet0_5": 64,
    "torchvision/shufflenet_v2_x0_5": 64,
    "torchvision/efficientnet_b0": 64,
    "torchvision/convnext_tiny": 64,
    "torchvision/vit_b_16": 224,
    "torchvision/swin_t": 64,
    "torchvision/swin_v2_t": 64,
    "torchvision/maxvit_t": 224,
    "torchvision/regnet_y_400mf": 64,
    "torchvision/squeezenet1_1": 64,
    "torchvision/googlenet": 64,
    "torchvision/inception_v3": 96,
    "torchvision/fasterrcnn_mobilenet_v3_large_320_fpn": 0,
    "torchvision/lraspp_mobilenet_v3_large": 0,
    "timm/convnext_atto": 64,
    "timm/vit_tiny_patch16_224": 224,
    "timm/deit_tiny_distilled_patch16_224": 224,
    "timm/resmlp_12_224": 224,
    "timm/levit_128s": 224,
    "timm/edgenext_xx_small": 64,
    **{name: 0 for name in TEMPLATES if name not in ("lstm_tiny", "gru_tiny")},
}
# Added after the split was drawn, which stays as it was: whether each is held out.
ADDED: Mapping[str, bool] = {"lstm_tiny": False, "gru_tiny": True}
# Looked at by nobody before: drawn by chance from the whole index, and held out, all of them.
DRAWN = 12
MOST_DRAWN_TENSORS, MOST_DRAWN_ELEMENTS = 800, 60_000_000
OPEN_SEEDS, HELD_SEEDS = (0, 1), (2, 3)


@dataclass(frozen=True)
class Architecture:
    """tensors: in the model's order, with dtypes. size: of the pictures it is asked about, 0 for none."""

    name: str
    tensors: tuple[TargetTensor, ...]
    size: int
    held_out: bool

    @property
    def spec(self) -> ArchitectureSpec | None:
        library, _, name = self.name.rpartition("/")
        return ArchitectureSpec(library=library, name=name) if library else None


def architecture_of(name: str, *, size: int = 0, held_out: bool = False) -> Architecture:
    if name in TEMPLATES:
        kinds = {True: "int64", False: "float32"}
        tensors = tuple(
            TargetTensor(name=n, shape=s, dtype=kinds[n.endswith("num_batches_tracked")])
            for n, s in TEMPLATES[name]().items()
        )
        return Architecture(name, tensors, 0, held_out)
    library, _, builder = name.partition("/")
    target = target_of(ArchitectureSpec(library=library, name=builder))
    return Architecture(name, target.tensors, size, held_out)


@lru_cache
def split() -> tuple[frozenset[str], frozenset[str]]:
    """(names that may be looked at, names held out)."""
    names = sorted(NAMED)
    random.Random("keybench: architectures").shuffle(names)
    half = len(names) // 2
    open_, held = (tuple(name for name, out in ADDED.items() if out is kind) for kind in (False, True))
    return frozenset((*names[:half], *open_)), frozenset((*names[half:], *held, *_drawn()))


def _drawn() -> list[str]:
    entries = [e for e in load_index().entries if not e.options and not e.needs_classes and e.label not in NAMED]
    random.Random("keybench: drawn").shuffle(entries)
    found = []
    for entry in entries:
        elements = sum(_numel(shape) for shape in entry.layout.shapes)
        if len(entry.layout.names) <= MOST_DRAWN_TENSORS and elements <= MOST_DRAWN_ELEMENTS:
            found.append(entry.label)
        if len(found) == DRAWN:
            break
    return found


def _numel(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def architectures(keep: Callable[[str], bool] = lambda name: True) -> list[Architecture]:
    """Those to be looked at, then those held out."""
    open_, held = split()
    named = [(name, False) for name in sorted(open_)] + [(name, True) for name in sorted(held)]
    return [architecture_of(name, size=NAMED.get(name, 0), held_out=out) for name, out in named if keep(name)]
