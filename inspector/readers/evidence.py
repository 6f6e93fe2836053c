"""Files beside a checkpoint that say what it is: configurations, hyperparameters, preprocessing.

They are evidence, not part of the file: each entry carries the name of the file it comes from, and whatever is in them
can neither make the opening fail nor slow it down. Nothing is looked for but the names listed here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from inspector.checkpoint.types import Checkpoint, Part
from inspector.errors import InspectorError, LimitExceeded
from inspector.limits import Limits
from inspector.readers.folder import Folder
from inspector.readers.plain_json import parse_json, whole
from inspector.readers.plain_yaml import read_yaml
from inspector.units import counted

_NBYTES = 1_000_000
_YAML_NBYTES = 128_000  # PyYAML's parser reads about 100 kB in a second.
_MOST_VALUES = 50_000
_MOST_ENTRIES = 200
_TEXT = 1000
_DEPTH = 4
_SHORT_LIST = 64
# Kept whole, as JSON: the names of the outputs, in their order.
_WHOLE = ("id2label", "class_names", "classes", "categories", "idx_to_class")
READ = "read as evidence"
Pair = tuple[str, str]


def _from_json(raw: bytes, name: str) -> tuple[list[Pair], bool]:
    value, _ = parse_json(raw, name, most_values=_MOST_VALUES)
    found: list[Pair] = []
    cut = False
    for pair in _flat("", value, 0):
        if len(found) >= _MOST_ENTRIES:
            cut = True
            break
        found.append(pair)
    return found, cut


def _from_yaml(raw: bytes, name: str) -> tuple[list[Pair], bool]:
    if len(raw) > _YAML_NBYTES:
        raise LimitExceeded(f"{name} has {len(raw):,} bytes; YAML is read up to {_YAML_NBYTES:,}.")
    pairs, cut = read_yaml(raw, name)
    return [(key or "(value)", text) for key, text in pairs[:_MOST_ENTRIES]], cut or len(pairs) > _MOST_ENTRIES


def _from_text(raw: bytes, name: str) -> tuple[list[Pair], bool]:
    """Lines of "key: value" or "key = value"; else, such as a printed Namespace, its beginning as one entry."""
    text = raw.decode("utf-8-sig", "backslashreplace")
    lines = [line for line in text.splitlines() if line.strip()]
    found = [
        (match[1], match[2].strip())
        for line in lines[:_MOST_ENTRIES]
        if (match := re.fullmatch(r"\s*-{0,2}([\w.-]{1,100})\s*[:=]\s*(.{0,2000})", line))
    ]
    if len(found) * 2 < min(len(lines), _MOST_ENTRIES):
        found = [("(text)", text.strip())] if text.strip() else []
    return found, len(lines) > _MOST_ENTRIES


_How = Callable[[bytes, str], tuple[list[Pair], bool]]
# In the order in which they are shown. The first is what most model folders have.
FILES: tuple[tuple[str, _How], ...] = (
    ("config.json", _from_json),
    ("adapter_config.json", _from_json),
    ("preprocessor_config.json", _from_json),
    ("generation_config.json", _from_json),
    ("model_index.json", _from_json),
    ("trainer_state.json", _from_json),
    ("params.json", _from_json),
    ("hparams.yaml", _from_yaml),
    ("hparams.yml", _from_yaml),
    ("hparams.json", _from_json),
    ("config.yaml", _from_yaml),
    ("config.yml", _from_yaml),
    ("args.json", _from_json),
    ("args.yaml", _from_yaml),
    ("args.yml", _from_yaml),
    ("args.txt", _from_text),
)
# Beside a checkpoint too, but a pickle: opened only when asked for.
PICKLES = ("training_args.bin",)


def add_evidence(
    checkpoint: Checkpoint, folder: Folder, limits: Limits, *, own: str = "", prefix: str = ""
) -> Checkpoint:
    """The checkpoint with what the files beside it say, in `metadata` ("config.json: hidden_size") and `parts`.

    own: name of the file that was opened, which is no evidence for itself. prefix: put before the names shown. A file
    that is in the parts already is not read again. Raises nothing.
    """
    known = {part.name for part in checkpoint.parts} | {own}
    metadata: list[Pair] = []
    parts: list[Part] = []
    for name, how in FILES:
        nbytes = folder.size_of(name)
        if nbytes is None or prefix + name in known:
            continue
        found, says = _read(folder, name, nbytes, how)
        metadata += [(f"{prefix}{name}: {key}", text) for key, text in found]
        parts.append(Part(name=prefix + name, nbytes=nbytes, says=says, opened=says.startswith(READ)))
    for name in PICKLES:
        nbytes = folder.size_of(name)
        if nbytes is not None and prefix + name not in known:
            parts.append(
                Part(name=prefix + name, nbytes=nbytes, says="a pickle, not read; open it by itself", opened=False)
            )
    if not parts:
        return checkpoint
    return replace(checkpoint, metadata=(*checkpoint.metadata, *metadata), parts=(*checkpoint.parts, *parts))


def _read(folder: Folder, name: str, nbytes: int, how: _How) -> tuple[list[Pair], str]:
    """(entries, what to say about the file)."""
    if nbytes > _NBYTES:
        return [], f"not read: {nbytes:,} bytes, evidence is read up to {_NBYTES:,}"
    try:
        source = folder.open(name)
        try:
            pairs, cut = how(source.read(0, min(source.size, _NBYTES)), name)
        finally:
            source.close()
    except (InspectorError, OSError, ValueError, RecursionError, MemoryError) as error:
        says = error.says if isinstance(error, InspectorError) else type(error).__name__
        return [], f"not read: {says[:200]}"
    kept = [(whole(key)[:200], _shortened(key, whole(text))) for key, text in pairs]
    return kept, f"{READ}, {'the first ' if cut else ''}{counted(len(kept), 'entry', 'entries')}"


def _shortened(key: str, text: str) -> str:
    if len(text) <= _TEXT or key.rpartition(".")[2] in _WHOLE:
        return text
    return text[:_TEXT] + "…"


def _flat(path: str, value: object, depth: int) -> Iterator[Pair]:
    """(dotted key, text) of every plain value; short lists of plain values and label tables as JSON."""
    if isinstance(value, dict):
        if path.rpartition(".")[2] in _WHOLE and value and all(isinstance(v, str) for v in value.values()):
            yield path, json.dumps(value, ensure_ascii=False)
        elif depth >= _DEPTH and value:
            yield path, f"({counted(len(value), 'entry', 'entries')} not shown)"
        else:
            for key, inner in value.items():
                yield from _flat(f"{path}.{key[:100]}" if path else str(key)[:100], inner, depth + 1)
    elif isinstance(value, list):
        is_whole = path.rpartition(".")[2] in _WHOLE and all(isinstance(v, str) for v in value)
        if is_whole or (len(value) <= _SHORT_LIST and not any(isinstance(v, dict | list) for v in value)):
            yield path or "(list)", json.dumps(value, ensure_ascii=False)
        else:
            yield path or "(list)", f"(a list of {counted(len(value), 'item')})"
    elif isinstance(value, str):
        yield path or "(value)", value
    else:
        yield path or "(value)", json.dumps(value)
