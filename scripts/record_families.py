"""Record the state dicts of model families from their own libraries: names, shapes, buffers, in their own order.

    python -m scripts.record_families [--output FOLDER] [FAMILY ...]

Needs transformers and diffusers. Models are built from configurations on the meta device, at published and at odd
small sizes; nothing is downloaded. Names changed between versions (4.30 keeps position numbers as buffers, 5 renamed
the vision transformers), so this is run once with each. The tests of `inspector/architectures/families` compare
themselves with the files, one per source and family, gzipped text:

    # LABEL {"class": ..., "config": ..., "from": "transformers-4.57.1", "tied": [...]}
    NAME SHAPE [buffer]

A shape is written 30522x768, that of a scalar "-". "tied" are the names that `save_pretrained` leaves out because they
share their storage with another tensor.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from scripts import recorded_media, recorded_models, recorded_originals

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "architectures" / "families" / "recorded"

LIBRARIES = {**recorded_models.MODELS, **recorded_media.MODELS}

Row = tuple[str, tuple[int, ...], bool]
Section = tuple[str, Mapping[str, Any], list[Row]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder for the files")
    parser.add_argument("families", nargs="*", help="only these")
    arguments = parser.parse_args()
    folder: Path = arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    for family in arguments.families or sorted({*LIBRARIES, *recorded_originals.MODELS}):
        texts: dict[str, list[str]] = {}
        for label, header, rows in (*library_models(family), *originals(family)):
            texts.setdefault(str(header["from"]), []).append(section(label, header, rows))
        for source, sections in texts.items():
            path = folder / source / f"{family}.txt.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            # The time of writing stays out of the file, so that the same libraries write the same bytes.
            path.write_bytes(gzip.compress("".join(sections).encode(), 9, mtime=0))
            print(f"{path.parent.name}/{path.name}: {len(sections)} models")


def originals(family: str) -> Iterator[Section]:
    """The family's models in their authors' names."""
    return recorded_originals.MODELS[family]() if family in recorded_originals.MODELS else iter(())


def library_models(family: str) -> Iterator[Section]:
    """The family's models in transformers or diffusers; those that the installed version lacks are named and left."""
    for label, class_name, config in LIBRARIES.get(family, ()):
        try:
            with torch.device("meta"):
                model, source = recorded_models.build(class_name, config)
        except (AttributeError, ImportError, TypeError) as error:
            print(f"{label}: {error}")
            continue
        yield label, {"class": class_name, "config": config, "from": source, "tied": tied_names(model)}, rows_of(model)


def rows_of(model: nn.Module) -> list[Row]:
    """(name, shape, is a buffer), in the order of the state dict."""
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return [(name, tuple(tensor.shape), name not in parameters) for name, tensor in model.state_dict().items()]


def tied_names(model: nn.Module) -> list[str]:
    """Names of tensors that `save_pretrained` leaves out, because they are another one."""
    stated = getattr(model, "all_tied_weights_keys", None)  # transformers 5
    if stated is not None:
        return sorted(stated)
    first: dict[int, str] = {}
    tensors = model.state_dict(keep_vars=True).items()
    return [name for name, tensor in tensors if first.setdefault(id(tensor), name) != name]


def section(label: str, header: Mapping[str, Any], rows: list[Row]) -> str:
    """One model as text."""
    lines = [f"# {label} {json.dumps(header, sort_keys=True)}"]
    for name, shape, is_buffer in rows:
        size = "x".join(map(str, shape)) or "-"
        lines.append(f"{name} {size} buffer" if is_buffer else f"{name} {size}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
