"""Record the state dicts of model families from their own libraries: names, shapes, buffers, in their own order.

    python -m scripts.record_families [--output FOLDER] [FAMILY ...]

Needs transformers and diffusers. Models are built from configurations on the meta device, at published and at odd
small sizes; nothing is downloaded. The tests of `inspector/architectures/families` compare themselves with the files,
one per family, gzipped text:

    # LABEL {"class": ..., "config": ..., "library": ..., "tied": [...]}
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder for the files")
    parser.add_argument("families", nargs="*", help="only these")
    arguments = parser.parse_args()
    folder: Path = arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    for family in arguments.families or sorted({*LIBRARIES, *recorded_originals.MODELS}):
        text = "".join(
            [
                *(section(*one) for one in library_models(family)),
                *(section(*one) for one in recorded_originals.MODELS.get(family, lambda: ())()),
            ]
        )
        # The name and the time of writing stay out of the file, so that the same libraries write the same bytes.
        (folder / f"{family}.txt.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        print(f"{family}: {text.count('# ')} models, {text.count(chr(10)):,} lines")


def library_models(family: str) -> Iterator[tuple[str, Mapping[str, Any], list[Row]]]:
    """(label, header, rows) of the family's models in transformers or diffusers."""
    for label, class_name, config in LIBRARIES.get(family, ()):
        with torch.device("meta"):
            model, library = recorded_models.build(class_name, config)
        header = {"class": class_name, "config": config, "library": library, "tied": tied_names(model)}
        yield label, header, rows_of(model)


def rows_of(model: nn.Module) -> list[Row]:
    """(name, shape, is a buffer), in the order of the state dict."""
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return [(name, tuple(tensor.shape), name not in parameters) for name, tensor in model.state_dict().items()]


def tied_names(model: nn.Module) -> list[str]:
    """What transformers ties to another tensor, and therefore does not save."""
    tied = getattr(model, "all_tied_weights_keys", None) or {}
    return sorted(tied)


def section(label: str, header: Mapping[str, Any], rows: list[Row]) -> str:
    """One model as text."""
    lines = [f"# {label} {json.dumps(header, sort_keys=True)}"]
    for name, shape, is_buffer in rows:
        size = "x".join(map(str, shape)) or "-"
        lines.append(f"{name} {size} buffer" if is_buffer else f"{name} {size}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
