"""What the outputs are called, where the file or its digest says so."""

from __future__ import annotations

import json

from inspector.architectures.types import Recognition
from inspector.cam.inputs.sample_classes import sample_classes
from inspector.checkpoint.stated import stated, stated_beside
from inspector.checkpoint.types import Checkpoint

_KEYS = ("class_names", "classes", "categories", "id2label", "idx_to_class", "class_to_idx", "label_names")
_MOST = 100_000
# Read by readers/sidecars.py, which lists the same.
_FILES = ("classes.txt", "labels.txt", "class_names.txt", "classes.json", "labels.json", "class_names.json")


def class_names(recognition: Recognition | None, checkpoint: Checkpoint | None) -> tuple[str, ...]:
    """Class names in output order, () where nobody states them.

    From the file itself first (a list under "classes" or "class_names", or a mapping from index to name), then from
    the official weights that it is by digest, then from id2label (transformers) or label_names (timm) in the
    config.json beside it, then from a list of names beside it ("classes.txt", "labels.json"), last from the manifest of
    this project's samples.
    """
    for key in _KEYS:
        names = names_in(stated(checkpoint, key))
        if names:
            return names
    if recognition is not None and recognition.official is not None:
        return recognition.official.categories
    beside = [("config.json", "id2label"), ("config.json", "label_names"), *((file, "classes") for file in _FILES)]
    found = next((names for place in beside if (names := names_in(stated_beside(checkpoint, *place)))), ())
    return found or (sample_classes(checkpoint) if checkpoint is not None else ())


def names_in_text(text: str, ending: str = "") -> tuple[str, ...]:
    """The names in a file that somebody wrote: JSON, where its ending says so or it begins so; else one in each line,
    empty lines left out."""
    if ending == ".json" or text.lstrip()[:1] in ("[", "{"):
        try:
            return names_in(json.loads(text))
        except (ValueError, RecursionError):
            return ()
    return names_in([line.strip() for line in text.splitlines() if line.strip()])


def names_in(found: object) -> tuple[str, ...]:
    """The names in a list, or in a mapping from every index to a name; () for anything else."""
    if isinstance(found, dict):
        entries: dict[object, object] = dict(found)
        if entries and all(type(index) is int for index in entries.values()):
            # torchvision's ImageFolder writes a mapping from name to index.
            turned: dict[object, object] = {index: name for name, index in entries.items()}
            entries = turned if len(turned) == len(entries) else {}
        found = _ordered(entries)
    if isinstance(found, list | tuple) and 0 < len(found) <= _MOST and all(isinstance(n, str) for n in found):
        return tuple(found)
    return ()


def _ordered(names: dict[object, object]) -> list[object] | None:
    """{"0": "cat", "1": "dog"} -> ["cat", "dog"], None unless the indices are 0 to n - 1."""
    by_index = {int(str(key)): name for key, name in names.items() if str(key).isdecimal()}
    if len(by_index) != len(names) or sorted(by_index) != list(range(len(names))):
        return None
    return [by_index[index] for index in range(len(names))]
