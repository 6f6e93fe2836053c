"""What the index takes from timm: names and shapes of every builder, and the published facts of its default_cfg.

Every builder is built on the meta device with timm's defaults, then with 7 classes, with 5 input channels, and with
pictures of twice and three times the size where it takes one. What changed follows that setting by a law, which has
to hold in every build; a tensor that follows none leaves the whole setting out for that builder.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import timm
import torch
from torch import nn

from inspector.architectures.index import SQUARE, sized

CLASSES = 7
CHANNELS = 5
SMALLEST_PATCH, LARGEST_PATCH = 2, 64
MOST_TOKENS = 16  # class, distillation and register tokens in front of the patches

Row = tuple[str, tuple[int, ...], str, bool]

FACTS = ("input_size", "test_input_size", "min_input_size", "fixed_input_size", "interpolation", "crop_pct")
FACTS += ("test_crop_pct", "crop_mode", "mean", "std", "tag", "classifier", "first_conv")


def version() -> str:
    return str(timm.__version__)


def names() -> tuple[str, ...]:
    return tuple(timm.list_models())


def entries_of(names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The entries of these builders, one after the other."""
    for name in names:
        yield from entries_from(scan(name))


def scan(name: str) -> dict[str, Any]:
    """Everything that is built of one builder: {"rows", "cfg", "num_classes", "c7", "i5", "s2", "s3"}.

    Each of the last four: rows of the model with that setting, None where the builder refuses it.
    """
    model = build(name)
    side = model.pretrained_cfg["input_size"][1]
    settings: dict[str, dict[str, int]] = {
        "c7": {"num_classes": CLASSES},
        "i5": {"in_chans": CHANNELS},
        "s2": {"img_size": 2 * side},
        "s3": {"img_size": 3 * side},
    }
    found: dict[str, Any] = {
        "name": name,
        "rows": rows_of(model),
        "num_classes": getattr(model, "num_classes", None),
        "cfg": {key: model.pretrained_cfg.get(key) for key in FACTS},
    }
    for label, setting in settings.items():
        try:
            found[label] = rows_of(build(name, **setting))
        except (TypeError, ValueError, AssertionError, RuntimeError, KeyError, AttributeError, NotImplementedError):
            found[label] = None  # this builder has no such setting
    return found


def build(name: str, **settings: int) -> Any:
    """A model without weights."""
    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore")
        return timm.create_model(name, pretrained=False, **settings)


def rows_of(model: nn.Module) -> list[Row]:
    """(name, shape, dtype, is buffer) in the order of the state dict."""
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return [
        (key, tuple(value.shape), str(value.dtype).removeprefix("torch."), key not in parameters)
        for key, value in model.state_dict().items()
        if isinstance(value, torch.Tensor)
    ]


def entries_from(scanned: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One entry, and a second one with a head for a builder whose default has none."""
    rows: list[Row] = scanned["rows"]
    entry: dict[str, Any] = {
        "library": "timm",
        "name": scanned["name"],
        "task": "classification",
        "options": {},
        "rows": rows,
        "heads": [],
        "channels": linear(rows, scanned["i5"], 3, CHANNELS) or [],
        "facts": {key: value for key, value in scanned["cfg"].items() if value is not None},
    }
    side = scanned["cfg"]["input_size"][1]
    positions = size_laws(rows, scanned["s2"], scanned["s3"], side)
    if positions:
        entry |= {"image_size": side, "positions": positions}
    default = scanned["num_classes"]
    headed: list[Row] | None = scanned["c7"]
    if default and (heads := linear(rows, headed, default, CLASSES)):
        entry |= {"num_classes": default, "heads": heads}
    yield entry
    if not default and headed is not None and len(headed) > len(rows):
        yield with_head(entry, headed)


def with_head(entry: dict[str, Any], rows: list[Row]) -> dict[str, Any]:
    """The entry of the same builder when it is asked for classes: what is new and begins with 7 follows them."""
    old = {row[0]: i for i, row in enumerate(entry["rows"])}
    moved = {old[row[0]]: i for i, row in enumerate(rows) if row[0] in old}
    heads = [(i, 0, 1, 0) for i, row in enumerate(rows) if row[0] not in old and row[1][:1] == (CLASSES,)]

    def shifted(laws: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return [(moved[i], *rest) for i, *rest in laws if i in moved]

    return {
        **entry,
        "rows": rows,
        "num_classes": CLASSES,
        "needs_classes": True,
        "heads": heads,
        "channels": shifted(entry["channels"]),
        **({"positions": shifted(entry["positions"])} if "positions" in entry else {}),
    }


def linear(rows: list[Row], others: list[Row] | None, before: int, after: int) -> list[tuple[int, ...]] | None:
    """(position, dimension, factor, offset) of what changed; None where names changed too or no whole factor fits."""
    if others is None or [row[0] for row in rows] != [row[0] for row in others]:
        return None
    laws = []
    for i, (row, other) in enumerate(zip(rows, others, strict=True)):
        if len(row[1]) != len(other[1]):
            return None
        for dim, (size, changed) in enumerate(zip(row[1], other[1], strict=True)):
            if size == changed:
                continue
            factor, rest = divmod(changed - size, after - before)
            if rest or factor <= 0:
                return None
            laws.append((i, dim, factor, size - factor * before))
    return laws


def size_laws(
    rows: list[Row], double: list[Row] | None, triple: list[Row] | None, side: int
) -> list[tuple[int, ...]] | None:
    """(position, dimension, patch, offset, kind) of what follows the picture size; None where something else does."""
    if double is None or triple is None:
        return None
    names = [row[0] for row in rows]
    if names != [row[0] for row in double] or names != [row[0] for row in triple]:
        return None
    kernels = {row[1][-1] for row in rows if len(row[1]) == 4 and row[1][1] == 3}
    laws = []
    for i, (row, twice, thrice) in enumerate(zip(rows, double, triple, strict=True)):
        if not len(row[1]) == len(twice[1]) == len(thrice[1]):
            return None
        for dim, sizes in enumerate(zip(row[1], twice[1], thrice[1], strict=True)):
            if len(set(sizes)) > 1:
                law = size_law(sizes, side, kernels)
                if law is None:
                    return None
                laws.append((i, dim, *law))
    return laws


def size_law(sizes: tuple[int, ...], side: int, kernels: Collection[int]) -> tuple[int, int, int] | None:
    """(patch, offset, kind) under which a dimension has these sizes at one, two and three times the side.

    kernels: sizes of the convolutions that see the picture. None where no law holds.
    """
    # 384 pixels with patches of 14 exist too; then the first convolution has to say that it is 14.
    patches = [patch for patch in range(SMALLEST_PATCH, LARGEST_PATCH + 1) if side % patch == 0 or patch in kernels]
    for patch in patches:
        for kind in range(4):
            offset = sizes[0] - sized(kind, side // patch)
            # Only patches in a square have tokens in front of them.
            if not 0 <= offset <= (MOST_TOKENS if kind == SQUARE else 0):
                continue
            if all(sized(kind, n * side // patch) + offset == size for n, size in enumerate(sizes, start=1)):
                return patch, offset, kind
    return None
