"""Rows of numbers for TensorBoard's Projector, as it finds them in a run's folder.

Source: tensorboard/plugins/projector/projector_config.proto and projector_plugin.py. Rows are written as text: the
plugin tries text first, and takes binary rows that happen to be text for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from inspector.errors import UsageError
from inspector.new_files import new_file

CONFIG = "projector_config.pbtxt"
_FOLDER = "projector"
_BREAKS = str.maketrans({"\t": " ", "\n": " ", "\r": " ", "\v": " ", "\f": " ", "\x1c": " ", "\x1d": " ", "\x1e": " ",
                         "\x85": " ", "\u2028": " ", "\u2029": " "})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sprite:
    """One picture of all the rows' thumbnails, row by row in a square grid. size: (height, width) of one of them."""

    png: bytes
    size: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """rows: (n, d), finite. columns: what the metadata are called; several, or one that is only shown as a label.
    metadata: n rows of as many texts as there are columns; empty without any."""

    name: str
    rows: ArrayLike
    columns: tuple[str, ...] = ("label",)
    metadata: Sequence[Sequence[str]] = ()
    sprite: Sprite | None = None


def write_projector(folder: Path, embeddings: Sequence[Embedding]) -> tuple[Path, ...]:
    """Write these into a folder that exists, in place of what it had for the Projector. Returns the files.

    Files have numbers and not the embeddings' names. Tabs and line breaks in metadata become spaces. Raises UsageError
    for what the Projector cannot show, OSError.
    """
    for embedding in embeddings:
        _check(embedding)
    below = folder / _FOLDER
    below.mkdir(exist_ok=True)
    written: list[Path] = []
    entries: list[str] = []
    for number, embedding in enumerate(embeddings):
        entries.append(_write_one(embedding, number, below, written))
    config = folder / CONFIG
    _write(config, "".join(entries).encode())
    return (*written, config)


def _check(embedding: Embedding) -> None:
    rows = np.asarray(embedding.rows)
    name = embedding.name[:100]
    if rows.ndim != 2 or not rows.shape[0] or not rows.shape[1]:
        raise UsageError(f'"{name}" for the Projector has to be a table of rows and columns, not {rows.shape}.')
    with np.errstate(over="ignore"):
        if not np.isfinite(rows.astype(np.float32)).all():
            raise UsageError(f'"{name}" has values that are not finite as float32: the Projector shows none of it.')
    if embedding.metadata and len(embedding.metadata) != len(rows):
        raise UsageError(f'"{name}" has {len(rows):,} rows and {len(embedding.metadata):,} of metadata.')
    if any(len(each) != len(embedding.columns) for each in embedding.metadata) or not embedding.columns:
        raise UsageError(f'"{name}" has metadata of another number of columns than are named.')
    if embedding.sprite is not None and min(embedding.sprite.size) < 1:
        raise UsageError(f'"{name}" has a sprite whose pictures have no size.')


def _write_one(embedding: Embedding, number: int, below: Path, written: list[Path]) -> str:
    """The entry of the config. written: gets the files."""
    rows = np.asarray(embedding.rows, np.float32)
    path = below / f"tensor_{number}.tsv"
    # Nine digits are every float32.
    _write(path, "".join("\t".join(f"{value:.9g}" for value in row) + "\n" for row in rows.tolist()).encode())
    written.append(path)
    lines = [
        f"  tensor_name: {_quoted(embedding.name)}",
        f'  tensor_path: "{_FOLDER}/{path.name}"',
        *(f"  tensor_shape: {size}" for size in rows.shape),
    ]
    if embedding.metadata:
        path = below / f"metadata_{number}.tsv"
        # One column has no heading: the first row would be taken for one.
        table = [*([embedding.columns] if len(embedding.columns) > 1 else []), *embedding.metadata]
        _write(path, "".join("\t".join(map(_cell, row)) + "\n" for row in table).encode("utf-8", "replace"))
        written.append(path)
        lines.append(f'  metadata_path: "{_FOLDER}/{path.name}"')
    if embedding.sprite is not None:
        path = below / f"sprite_{number}.png"
        _write(path, embedding.sprite.png)
        written.append(path)
        height, width = embedding.sprite.size
        sizes = f"single_image_dim: {width} single_image_dim: {height}"
        lines.append(f'  sprite {{ image_path: "{_FOLDER}/{path.name}" {sizes} }}')
    return "embeddings {\n" + "\n".join(lines) + "\n}\n"


def _write(path: Path, content: bytes) -> None:
    with new_file(path) as temporary:
        temporary.write_bytes(content)


def _cell(text: str) -> str:
    # An empty line would be no row.
    return text.translate(_BREAKS).strip() or "-"


def _quoted(name: str) -> str:
    """As protocol buffers' text format writes bytes."""
    made = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}"
        for byte in name.encode("utf-8", "replace")
    )
    return f'"{made}"'
