"""Files of one network for the target of another: siblings, which must be refused; twins, which no file tells apart;
and natural pairs, which are one network under the names of two libraries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from benchmarks.keybench.architectures import Architecture, architecture_of
from benchmarks.keybench.corruptions_names import BY_ORDER
from benchmarks.keybench.damage import Answer, Corruption, Damaged, renamed
from benchmarks.keybench.models import tables_of
from benchmarks.keybench.numbers import fingerprints
from benchmarks.keybench.templates import TEMPLATES
from inspector.architectures.index import Entry, load_index
from inspector.architectures.types import TargetTensor

SIBLINGS = (
    ("torchvision/resnet34", "torchvision/resnet50"),
    ("torchvision/resnet34", "torchvision/resnet18"),
    ("torchvision/resnet18", "torchvision/resnet34"),
    ("torchvision/resnet101", "torchvision/resnet50"),
    ("torchvision/vgg13", "torchvision/vgg11"),
    ("torchvision/vgg11", "torchvision/vgg13"),
    ("torchvision/densenet169", "torchvision/densenet121"),
    ("torchvision/efficientnet_b1", "torchvision/efficientnet_b0"),
    ("torchvision/mobilenet_v3_large", "torchvision/mobilenet_v3_small"),
    ("torchvision/convnext_small", "torchvision/convnext_tiny"),
    ("torchvision/swin_s", "torchvision/swin_t"),
    ("torchvision/vit_b_32", "torchvision/vit_b_16"),
    ("timm/vit_small_patch16_224", "timm/vit_tiny_patch16_224"),
    ("timm/deit_tiny_distilled_patch16_224", "timm/vit_tiny_patch16_224"),
    ("timm/convnext_femto", "timm/convnext_atto"),
    ("timm/resmlp_24_224", "timm/resmlp_12_224"),
    ("timm/resnest50d", "timm/resnest14d"),
    ("timm/cs3sedarknet_l", "timm/cs3darknet_l"),
    ("bert_tiny of 6 layers", "bert_tiny of 4 layers"),
    ("gpt2_tiny of 4 layers", "gpt2_tiny of 6 layers"),
    ("llama_tiny of 8 layers", "llama_tiny of 6 layers"),
)
TWINS = (
    ("torchvision/resnet50", "timm/resnetaa50"),
    ("timm/resnet50", "timm/resnetblur50"),
    ("timm/efficientnet_b0", "timm/tf_efficientnet_b0"),
)

SIBLING = Corruption("another size", renamed(str), expects=Answer.REFUSE)
TWIN = Corruption("a twin", renamed(str), expects=Answer.TELL)
NATURAL = Corruption("torchvision's file for timm's model", renamed(str), BY_ORDER, simple=False)


class Pair(NamedTuple):
    corruption: Corruption
    architecture: Architecture
    case: Damaged


def sized(name: str) -> Architecture:
    plain, _, depth = name.partition(" of ")
    if not depth:
        return architecture_of(name)
    net = TEMPLATES[plain](int(depth.partition(" ")[0]))
    return Architecture(name, tuple(TargetTensor(name=n, shape=s, dtype="float32") for n, s in net.items()), 0, False)


def pairs() -> Iterator[Pair]:
    for kind, listed in ((SIBLING, SIBLINGS), (TWIN, TWINS)):
        for ours, theirs in listed:
            one, other = sized(ours), sized(theirs)
            file, truth = fingerprints(one, 0, tables_of(one)), fingerprints(other, 1)
            yield Pair(kind, replace(other, name=f"{ours} as {theirs}"), Damaged(file, truth, frozenset()))
    for entry, its_twin in natural():
        one, other = architecture_of(entry.label), architecture_of(its_twin.label)
        file = fingerprints(one, 0, tables_of(one))
        truth = dict(zip((t.name for t in other.tensors), file.values(), strict=True))
        label = f"{entry.label} as {its_twin.label}"
        yield Pair(NATURAL, replace(other, name=label), Damaged(file, truth, frozenset(truth)))


def natural() -> list[tuple[Entry, Entry]]:
    """(torchvision's, timm's) entries with one sequence of shapes under different names."""
    by_shapes: dict[tuple[object, ...], list[Entry]] = defaultdict(list)
    entries = [e for e in load_index().entries if not e.options and not e.needs_classes]
    for entry in entries:
        if entry.library == "timm":
            by_shapes[entry.layout.shapes].append(entry)
    found = []
    for entry in entries:
        if entry.library == "torchvision":
            others = [o for o in by_shapes.get(entry.layout.shapes, ()) if o.layout.names != entry.layout.names]
            found += [(entry, other) for other in others[:1]]
    return found
