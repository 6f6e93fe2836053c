"""Write the index of torchvision's and timm's architectures that `inspector.architectures` ships.

    python -m scripts.build_index [--output FOLDER]

Every builder is built on the meta device (quantised ones on the CPU), with two more class counts and another picture
size where it takes them, so that the index knows which tensors follow which setting; `index_timm` does the same for
timm (`pip install -e .[timm]`, about a quarter of an hour). Of the published weights only the facts in torchvision's
enums and timm's default_cfg are taken: nothing is downloaded. The output is the same, byte for byte, for the same
libraries.
"""

from __future__ import annotations

import argparse
import gzip
import json
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import nn
from torchvision.models import get_model_builder, get_model_weights
from torchvision.models._api import WeightsEnum
from torchvision.ops import FrozenBatchNorm2d

from inspector.architectures.build import _MetaParameters, build_model, builder_names, first_convolutions, takes
from inspector.architectures.index import INDEX_FILE, SQUARE, is_bookkeeping
from inspector.architectures.store import ARRAYS, FORMAT
from inspector.architectures.types import ArchitectureSpec
from inspector.errors import UsageError

FOLDER = Path(__file__).resolve().parent.parent / "inspector" / "architectures" / "data"
LICENCES = {"torchvision": "BSD-3-Clause", "timm": "Apache-2.0"}
OTHER_CLASSES = (7, 12)
OTHER_IMAGE_SIZE = 448  # a multiple of every patch size in use: 14, 16, 32

Row = tuple[str, tuple[int, ...], str, bool]
Options = tuple[tuple[str, bool | int | float], ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder for the two files")
    folder: Path = parser.parse_args().output
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    names = builder_names()
    from scripts import index_timm

    entries = chain(entries_of(names), index_timm.entries_of(index_timm.names()))
    write(folder / INDEX_FILE, packed(entries, {"torchvision": version(), "timm": index_timm.version()}))
    text = json.dumps(weights_of(names), separators=(",", ":"), ensure_ascii=False)
    write(folder / "torchvision-weights.json.gz", text.encode())


def write(path: Path, content: bytes) -> None:
    """Compressed without a time stamp."""
    path.write_bytes(gzip.compress(content, compresslevel=9, mtime=0))
    print(f"{path.name}: {path.stat().st_size:,} bytes from {len(content):,}")


def version() -> str:
    """torchvision's release without the local build suffix."""
    return str(torchvision.__version__).partition("+")[0]


class Table:
    """Values numbered in order of first appearance."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def values(self) -> list[Any]:
        return list(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def entries_of(names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """torchvision's entries, with their rows."""
    for name in names:
        for options in variants(name):
            yield {"library": "torchvision", "name": name, "options": dict(options), **entry_of(name, options)}


def packed(entries: Iterable[dict[str, Any]], versions: dict[str, str]) -> bytes:
    """Everything `inspector.architectures.store` reads; see there for the format."""
    keys, shapes, kinds, tensors, layouts, kin, facts = (Table() for _ in range(7))
    found = []
    for entry in entries:
        rows: list[Row] = entry["rows"]
        layout = tuple(
            tensors.number((keys.number(key), shapes.number(tuple(shape)), kinds.number((dtype, int(is_buffer)))))
            for key, shape, dtype, is_buffer in rows
        )
        following = {i for laws in ("heads", "channels", "positions") for i, *_ in entry.get(laws, ())}
        same = frozenset((key, None if i in following else tuple(shape)) for i, (key, shape, *_) in enumerate(rows))
        # The entry stays as it is: whoever makes the next one may still look at it.
        written = plain({key: value for key, value in entry.items() if key != "rows"})
        if "facts" in entry:
            written["facts"] = facts.number(json.dumps(entry["facts"]))
        found.append({**written, "layout": layouts.number(layout), "kin": kin.number(same)})
    names: list[str] = keys.values()
    parts = tensors.values()
    first: dict[tuple[int, int], int] = {}
    again = []
    for number, (key, shape, _) in enumerate(parts):
        if first.setdefault((key, shape), number) != number:
            again.append((number, first[key, shape]))
    header = {
        "format": FORMAT,
        "source": "Names and shapes of the models that these libraries build, and the facts they publish about them: "
        + ", ".join(f"{library} {release} ({LICENCES[library]})" for library, release in versions.items()),
        "versions": versions,
        "entries": found,
        "facts": [json.loads(text) for text in facts.values()],
        "shapes": shapes.values(),
        "kinds": kinds.values(),
        "segments": sorted({segment for name in names for segment in name.split(".")}),
        "sizes": [sum(not is_bookkeeping(names[parts[t][0]]) for t in layout) for layout in layouts.values()],
        "counters": [number for number, (key, *_) in enumerate(parts) if is_bookkeeping(names[key])],
        "again": again,
    }
    members = [t for layout in layouts.values() for t in layout]
    arrays = {
        "tokens": [key * len(shapes) + shape for key, shape, _ in parts],
        "kind_of": [kind for *_, kind in parts],
        "lengths": [len(layout) for layout in layouts.values()],
        "members": [now - before for before, now in zip([0, *members], members, strict=False)],
    }
    text = "\n".join(names).encode()
    header |= {"names_nbytes": len(text), "arrays": {name: len(values) for name, values in arrays.items()}}
    line = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    body = b"".join(struct.pack(f"<{len(arrays[name])}i", *arrays[name]) for name in ARRAYS)
    return line + b"\n" + text + body


def plain(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry without what is as usual."""
    usual: dict[str, Any] = {"library": "timm", "task": "classification"}
    return {key: value for key, value in entry.items() if value not in ([], {}, None) and usual.get(key) != value}


def variants(name: str) -> tuple[Options, ...]:
    """The settings under which this builder has other names: auxiliary heads, frozen norms, quantised modules."""
    found: list[Options] = [()]
    plain = name.removeprefix("quantized_")
    if takes(name, "aux_loss"):
        found.append((("aux_loss", True),))
    if plain == name and takes(name, "aux_logits"):
        found.append((("aux_logits", False),))
    if plain != name:
        found.append((("quantize", True),))
    if frozen_epsilon(name) is not None:
        found.append((("frozen_norm", True),))
    return tuple(found)


def entry_of(name: str, options: Options) -> dict[str, Any]:
    """Names and shapes under the builder's defaults, and which of them follow which setting."""
    quantised = dict(options).get("quantize") is True
    spec = ArchitectureSpec(library="torchvision", name=name, options=options)
    model = build(spec, quantised)
    rows = rows_of(model)
    position = {row[0]: i for i, row in enumerate(rows)}
    facts: dict[str, Any] = {"rows": rows, "task": task_of(name)}
    facts["channels"] = [
        (position[f"{path}.weight"], 1, 1, 0) for path in first_convolutions(model) if f"{path}.weight" in position
    ]
    try:
        others = [
            rows_of(
                build(ArchitectureSpec(library="torchvision", name=name, num_classes=n, options=options), quantised)
            )
            for n in OTHER_CLASSES
        ]
    except UsageError:
        pass  # optical flow has no classes
    else:
        facts |= class_facts(name, rows, *others)
    if takes(name, "image_size"):
        facts |= size_facts(spec, model, rows)
    return facts


def build(spec: ArchitectureSpec, quantised: bool) -> nn.Module:
    return build_model(spec, device="cpu" if quantised else "meta")


def class_facts(name: str, rows: list[Row], low: list[Row], high: list[Row]) -> dict[str, Any]:
    """Heads as (position, dimension, factor, offset): size = factor x classes + offset. Checked on the default."""
    heads = []
    counts = set()
    for i, (row, a, b) in enumerate(zip(rows, low, high, strict=True)):
        for dim, (size, size_a, size_b) in enumerate(zip(row[1], a[1], b[1], strict=True)):
            if size_a == size_b:
                continue
            factor, rest = divmod(size_b - size_a, OTHER_CLASSES[1] - OTHER_CLASSES[0])
            offset = size_a - factor * OTHER_CLASSES[0]
            classes, odd = divmod(size - offset, factor)
            if rest or odd:
                raise SystemExit(f"{name}: {row[0]} does not follow the class count linearly")
            heads.append((i, dim, factor, offset))
            counts.add(classes)
    if len(counts) > 1:
        raise SystemExit(f"{name}: its heads disagree about the default class count: {counts}")
    return {"num_classes": counts.pop(), "heads": heads} if counts else {}


def size_facts(spec: ArchitectureSpec, model: nn.Module, rows: list[Row]) -> dict[str, Any]:
    """Position embeddings as (position, dimension, patch, extra, kind): size = (picture / patch)^2 + extra."""
    other = ArchitectureSpec(library=spec.library, name=spec.name, options=(("image_size", OTHER_IMAGE_SIZE),))
    patch = model.get_submodule("conv_proj").get_parameter("weight").shape[-1]
    positions = []
    for i, (row, changed) in enumerate(zip(rows, rows_of(build(other, False)), strict=True)):
        for dim, (_, size) in enumerate(zip(row[1], changed[1], strict=True)):
            if row[1][dim] != size:
                positions.append((i, dim, patch, size - (OTHER_IMAGE_SIZE // patch) ** 2, SQUARE))
    return {"image_size": int(model.image_size), "positions": positions}  # type: ignore[arg-type]


def rows_of(model: nn.Module) -> list[Row]:
    """(name, shape, dtype, is buffer) in the order of the state dict; what is no tensor is left out."""
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return [
        (key, tuple(value.shape), str(value.dtype).removeprefix("torch."), key not in parameters)
        for key, value in model.state_dict().items()
        if isinstance(value, torch.Tensor)
    ]


def task_of(name: str) -> str:
    """Which subpackage of torchvision.models the builder is from."""
    parts = get_model_builder(name).__module__.split(".")
    return parts[2] if len(parts) > 3 else "classification"


def weights_of(names: tuple[str, ...]) -> dict[str, Any]:
    """Everything `inspector.architectures.official` and `facts` read; see there for the fields."""
    categories = Table()
    entries = []
    for name in names:
        for weights in get_model_weights(name):
            meta = weights.meta
            entries.append(
                {
                    "name": str(weights),
                    "builder": name,
                    "file": weights.url.rpartition("/")[2],
                    "categories": categories.number(tuple(meta["categories"])) if meta.get("categories") else None,
                    "options": official_options(name, weights),
                    "transforms": transforms_of(weights),
                    "min_size": list(meta["min_size"]) if "min_size" in meta else None,
                    "default": weights is get_model_weights(name).DEFAULT,
                }
            )
    return {"format": 1, "torchvision": version(), "categories": categories.values(), "weights": entries}


def transforms_of(weights: WeightsEnum) -> dict[str, Any]:
    """The published preprocessing: its class and whichever of these settings it has."""
    preset = weights.transforms()
    facts: dict[str, Any] = {"kind": type(preset).__name__}
    for name in ("resize_size", "crop_size", "mean", "std"):
        value = getattr(preset, name, None)
        if value is not None:
            facts[name] = list(value)
    if hasattr(preset, "interpolation"):
        facts["interpolation"] = preset.interpolation.value
    if "min_temporal_size" in weights.meta:
        facts["frames"] = weights.meta["min_temporal_size"]
    return facts


def official_options(name: str, weights: WeightsEnum) -> dict[str, bool | int | float]:
    """What torchvision sets beyond its defaults when it builds a model for these weights."""
    plain = build_model(ArchitectureSpec(library="torchvision", name=name), device="meta")
    quantised = name.startswith("quantized_")
    model = official_model(name, weights)
    found: dict[str, bool | int | float] = {}
    if any(key.startswith("aux_classifier") for key in dict(model.named_parameters())):
        found["aux_loss"] = True
    norms = [m for m in model.modules() if isinstance(m, FrozenBatchNorm2d)]
    if norms:
        found["frozen_norm"] = True
        found["frozen_epsilon"] = norms[0].eps
    if getattr(model, "image_size", None) != getattr(plain, "image_size", None):
        found["image_size"] = int(model.image_size)  # type: ignore[arg-type]
    if quantised:
        found["quantize"] = True
    if getattr(model, "transform_input", False):
        found["transform_input"] = True
    options = tuple(sorted(found.items()))
    own = build_model(ArchitectureSpec(library="torchvision", name=name, options=options), device="meta")
    if not quantised and rows_of(own) != rows_of(model):
        raise SystemExit(f"{weights}: a model built with {dict(options)} has other names or shapes than the published")
    return dict(options)


def frozen_epsilon(name: str) -> float | None:
    """The epsilon of the frozen norms in the trained model, None when it has none."""
    weights = get_model_weights(name).DEFAULT
    return official_options(name, weights).get("frozen_epsilon") if task_of(name) == "detection" else None


def official_model(name: str, weights: WeightsEnum) -> nn.Module:
    """As torchvision builds it for these weights, with the download and the load left out."""
    builder: Callable[..., nn.Module] = get_model_builder(name)
    quantised = name.startswith("quantized_")
    # The published files hold the auxiliary heads, which the builders cut off after the load unless asked for.
    keep: dict[str, Any] = {"aux_logits": True} if takes(name, "aux_logits") and not quantised else {}
    with nothing_downloaded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if quantised:
            return builder(weights=weights, quantize=True)
        try:
            with torch.device("meta"):
                return builder(weights=weights, **keep)
        except NotImplementedError:
            with _MetaParameters():
                return builder(weights=weights, **keep)


@contextmanager
def nothing_downloaded() -> Iterator[None]:
    """Builders get an empty state dict from the enum and load nothing."""
    get, load = WeightsEnum.get_state_dict, nn.Module.load_state_dict
    WeightsEnum.get_state_dict = lambda self, *args, **kwargs: {}
    nn.Module.load_state_dict = lambda self, *args, **kwargs: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        WeightsEnum.get_state_dict, nn.Module.load_state_dict = get, load  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
