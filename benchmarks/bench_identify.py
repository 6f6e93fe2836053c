"""How often is an architecture recognised from names and shapes? Over the whole shipped index, and over strangers.

    python -m benchmarks.bench_identify [--seed 0] [--every 1] [--only LABEL ...]

Every builder of torchvision and timm (in its plain variant) is spoiled in several ways and recognised again. The truth
is the class of builders with the same names and shapes; top-1 counts the first candidate and its twins, top-5 any of
the first five. The class counts of replaced heads must come back too. Small torch models that are in neither library
must not be named. The time is processor time of one `rank` call with a warm index, on one thread.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from inspector.architectures.by_shapes import alike, rank_by_shapes
from inspector.architectures.index import Entry, is_bookkeeping, load_index
from inspector.architectures.match import is_worth_naming
from inspector.architectures.recognise import rank
from inspector.architectures.types import Candidate
from inspector.checkpoint.types import Shape

MOST_LISTED = 12

Shapes = dict[str, Shape]
Spoil = Callable[[Entry, random.Random], Shapes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: shares are of all builders, seconds per file."""

    label: str
    cases: int
    top1: float
    top5: float
    named: float
    classes_right: float
    median_seconds: float
    worst_seconds: float
    wrong: tuple[str, ...]


def intact(entry: Entry, chance: random.Random) -> Shapes:
    return {tensor.name: tensor.shape or () for tensor in entry.tensors}


def without_counters(entry: Entry, chance: random.Random) -> Shapes:
    return {name: shape for name, shape in intact(entry, chance).items() if not is_bookkeeping(name)}


def ten_classes(entry: Entry, chance: random.Random) -> Shapes:
    shapes = entry.at(num_classes=10, in_channels=None, image_size=None)
    return {tensor.name: shape for tensor, shape in zip(entry.tensors, shapes, strict=True)}


def one_channel(entry: Entry, chance: random.Random) -> Shapes:
    shapes = entry.at(num_classes=None, in_channels=1, image_size=None)
    return {tensor.name: shape for tensor, shape in zip(entry.tensors, shapes, strict=True)}


def thinned(spoil: Spoil, share: float) -> Spoil:
    """A share of the tensors is missing, drawn by the seed."""

    def apply(entry: Entry, chance: random.Random) -> Shapes:
        shapes = spoil(entry, chance)
        kept = chance.sample(sorted(shapes), max(1, round(len(shapes) * (1 - share))))
        return {name: shape for name, shape in shapes.items() if name in set(kept)}

    return apply


def wrapped(spoil: Spoil, prefix: str) -> Spoil:
    def apply(entry: Entry, chance: random.Random) -> Shapes:
        return {prefix + name: shape for name, shape in spoil(entry, chance).items()}

    return apply


def inside_a_model(entry: Entry, chance: random.Random) -> Shapes:
    """As the trunk of somebody's own model: under "backbone.", its heads gone, another head beside it."""
    heads = {entry.tensors[i].name for i, *_ in entry.heads}
    trunk = {f"backbone.{name}": shape for name, shape in intact(entry, chance).items() if name not in heads}
    return {**trunk, "projector.0.weight": (128, 512), "projector.0.bias": (128,), "projector.2.weight": (64, 128)}


SPOILS: tuple[tuple[str, Spoil], ...] = (
    ("intact", intact),
    ("no batch counters", without_counters),
    ("10 classes", ten_classes),
    ("1 input channel", one_channel),
    ("10 % missing", thinned(intact, 0.1)),
    ("10 classes and 10 % missing", thinned(ten_classes, 0.1)),
    ('under "module."', wrapped(intact, "module.")),
    ('under "_orig_mod.module.net_G."', wrapped(intact, "_orig_mod.module.net_G.")),
    ('"module.", 10 classes, 10 % missing', wrapped(thinned(ten_classes, 0.1), "module.")),
    ("trunk of another model", inside_a_model),
    ("50 % missing", thinned(intact, 0.5)),
)


def measure(label: str, spoil: Spoil, entries: tuple[Entry, ...], seed: int) -> Row:
    """Recognise every entry once under one kind of damage."""
    index = load_index()
    top1 = top5 = named = classes_right = with_heads = 0
    seconds, wrong = [], []
    for entry in entries:
        # A text seed is hashed the same way in every process.
        shapes = spoil(entry, random.Random(f"{seed} {entry.label}"))
        start = time.process_time()
        ranked = rank(shapes, index)
        seconds.append(time.process_time() - start)
        groups = [labels_of(candidate) for candidate in ranked[:5]]
        hit = bool(groups) and entry.label in groups[0]
        top1 += hit
        top5 += any(entry.label in group for group in groups)
        named += hit and is_worth_naming(ranked[0])
        if not hit:
            wrong.append(f"{entry.label} as {ranked[0].spec.label if ranked else 'nothing'}")
        if "10 classes" in label and entry.heads and any(_is_head(entry, name) for name in shapes):
            with_heads += 1
            classes_right += hit and ranked[0].spec.num_classes == 10
    cases = len(entries)
    return Row(
        label=label,
        cases=cases,
        top1=top1 / cases,
        top5=top5 / cases,
        named=named / cases,
        classes_right=classes_right / with_heads if with_heads else float("nan"),
        median_seconds=statistics.median(seconds),
        worst_seconds=max(seconds),
        wrong=tuple(wrong),
    )


BY_SHAPES = tuple(
    (label, spoil)
    for label, spoil in SPOILS
    if label in ("intact", "10 classes", "10 % missing", "10 classes and 10 % missing", "50 % missing")
)


def measure_by_shapes(label: str, spoil: Spoil, entries: tuple[Entry, ...], seed: int) -> Row:
    """The same with nothing but the shapes in order; the truth is the class of builders with the same ones."""
    index = load_index()
    top1 = top5 = named = 0
    seconds, wrong = [], []
    for entry in entries:
        spoiled = spoil(entry, random.Random(f"{seed} {entry.label}"))
        # In the model's own order, as a pickle keeps it: thinning draws names, not places.
        shapes = {f"p{i:05d}": spoiled[t.name] for i, t in enumerate(entry.tensors) if t.name in spoiled}
        start = time.process_time()
        ranked = rank_by_shapes(shapes, index)
        seconds.append(time.process_time() - start)
        hit = entry.label in (ranked[0].label, *ranked[0].twins)
        top1 += hit
        top5 += any(entry.label in (one.label, *one.twins) for one in ranked[:5])
        named += hit and bool(alike(shapes, index))
        if not hit:
            wrong.append(f"{entry.label} as {ranked[0].label}")
    return Row(
        label=f"shapes only, {label}",
        cases=len(entries),
        top1=top1 / len(entries),
        top5=top5 / len(entries),
        named=named / len(entries),
        classes_right=float("nan"),
        median_seconds=statistics.median(seconds),
        worst_seconds=max(seconds),
        wrong=tuple(wrong),
    )


def labels_of(candidate: Candidate) -> frozenset[str]:
    """The candidate's builder and its twins: "timm/resnet18"."""
    return frozenset({f"{candidate.spec.library}/{candidate.spec.name}", *candidate.twins})


def _is_head(entry: Entry, name: str) -> bool:
    return any(name.endswith(entry.tensors[i].name) for i, *_ in entry.heads)


def plain_entries() -> tuple[Entry, ...]:
    """One entry per builder: without auxiliary variants, unquantised, as the builder makes it by default."""
    return tuple(entry for entry in load_index().entries if not entry.options and not entry.needs_classes)


def table(seed: int = 0, every: int = 1, only: Collection[str] = ()) -> Iterator[Row]:
    entries = plain_entries()[::every]
    for label, spoil in SPOILS:
        if not only or label in only:
            yield measure(label, spoil, entries, seed)
    for label, spoil in BY_SHAPES:
        if not only or f"shapes only, {label}" in only:
            yield measure_by_shapes(label, spoil, entries, seed)


def strangers() -> dict[str, Shapes]:
    """State dicts of models that neither library has; built on meta, so torch is needed."""
    import torch
    from torch import nn

    def cifar_resnet20() -> Shapes:
        shapes: Shapes = {"conv1.weight": (16, 3, 3, 3), "linear.weight": (10, 64), "linear.bias": (10,)}
        norm = ("weight", "bias", "running_mean", "running_var")
        shapes |= {f"bn1.{leaf}": (16,) for leaf in norm}
        before = 16
        for stage, width in enumerate((16, 32, 64), start=1):
            for block in range(3):
                for conv in (1, 2):
                    path = f"layer{stage}.{block}"
                    shapes[f"{path}.conv{conv}.weight"] = (width, before, 3, 3)
                    shapes |= {f"{path}.bn{conv}.{leaf}": (width,) for leaf in norm}
                    before = width
        return shapes

    def gpt2() -> Shapes:
        shapes: Shapes = {"transformer.wte.weight": (50257, 768), "transformer.wpe.weight": (1024, 768)}
        parts: Shapes = {
            "ln_1.weight": (768,), "ln_1.bias": (768,), "ln_2.weight": (768,), "ln_2.bias": (768,),
            "attn.c_attn.weight": (768, 2304), "attn.c_attn.bias": (2304,), "attn.c_proj.weight": (768, 768),
            "attn.c_proj.bias": (768,), "mlp.c_fc.weight": (768, 3072), "mlp.c_fc.bias": (3072,),
            "mlp.c_proj.weight": (3072, 768), "mlp.c_proj.bias": (768,),
        }  # fmt: skip
        return shapes | {f"transformer.h.{i}.{name}": shape for i in range(12) for name, shape in parts.items()}

    with torch.device("meta"):
        models: dict[str, nn.Module] = {
            "MLP": nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)),
            "transformer encoder": nn.TransformerEncoder(
                nn.TransformerEncoderLayer(512, 8), 6, enable_nested_tensor=False
            ),
            "audio convolutions": nn.Sequential(
                *(nn.Sequential(nn.Conv1d(64, 64, 9), nn.BatchNorm1d(64)) for _ in range(8))
            ),
            "LSTM": nn.LSTM(256, 512, 3),
            "small VGG-like": nn.ModuleDict(
                {
                    "features": nn.Sequential(
                        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.Conv2d(64, 128, 3)
                    ),
                    "classifier": nn.Sequential(nn.Linear(128, 10)),
                }
            ),
            "linear probe": nn.ModuleDict({"fc": nn.Linear(512, 1000)}),
        }
    built = {label: {k: tuple(v.shape) for k, v in model.state_dict().items()} for label, model in models.items()}
    return {**built, "CIFAR resnet20": cifar_resnet20(), "GPT-2": gpt2()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="measure every n-th builder")
    parser.add_argument("--only", nargs="*", default=(), help="damages to measure, by their labels")
    chosen = parser.parse_args()
    start = time.process_time()
    index = load_index()
    loaded = time.process_time() - start
    index.warm()
    ready = time.process_time() - start
    made_with = ", ".join(f"{library} {release}" for library, release in index.versions.items())
    print(f"index of {made_with}: {len(index.entries)} entries, {len(index.builders)} builders")
    print(f"loaded in {loaded * 1000:.0f} ms, ready in {ready * 1000:.0f} ms of processor time")
    print(f"{'':38}{'top-1':>8}{'top-5':>8}{'named':>8}{'classes':>9}{'median':>10}{'worst':>9}")
    for row in table(chosen.seed, chosen.every, chosen.only):
        classes = "" if row.classes_right != row.classes_right else f"{row.classes_right:.1%}"
        print(
            f"{row.label:38}{row.top1:8.1%}{row.top5:8.1%}{row.named:8.1%}{classes:>9}"
            f"{row.median_seconds * 1000:7.1f} ms{row.worst_seconds * 1000:6.0f} ms"
        )
        for text in row.wrong[:MOST_LISTED]:
            print(f"    {text}")
        if len(row.wrong) > MOST_LISTED:
            print(f"    and {len(row.wrong) - MOST_LISTED} more")
        sys.stdout.flush()
    for label, shapes in strangers().items():
        ranked = rank(shapes, index)
        claimed = [c.spec.name for c in ranked if is_worth_naming(c)]
        claimed += [one.label for one in alike(shapes, index)]
        print(f"{label}: {'named ' + ', '.join(claimed) if claimed else 'not named'}")


if __name__ == "__main__":
    main()
