"""What a file, or the config.json beside it, says about its architecture's name. Evidence between twins, not more."""

from __future__ import annotations

import json

from inspector.architectures.index import LIBRARIES, Index, load_index
from inspector.architectures.types import ArchitectureSpec
from inspector.checkpoint.types import Checkpoint

# timm's config.json has "architecture"; training scripts save "arch" (torch's ImageNet example, timm's train.py).
KEYS = ("architecture", "arch", "model_name", "model")
LONGEST = 200  # characters
# Files that describe a model's arguments by their names.
CONFIGS = ("config.json", "hparams.yaml", "hparams.yml", "hparams.json", "params.json", "args.json", "args.yaml")


def stated_architectures(checkpoint: Checkpoint, index: Index) -> dict[str, str]:
    """Label of a known architecture -> where it is named ('"arch" in the file').

    config.json belongs to timm's own files, so its names are timm's; elsewhere a bare name is torchvision's first.
    """
    found: dict[str, str] = {}
    for name, text in checkpoint.own_metadata:
        if name.rpartition(".")[2] in KEYS:
            for label in labels_named(text, index, LIBRARIES):
                found.setdefault(label, f'"{name}" in the file')
    for name, text in checkpoint.metadata:
        place, _, key = name.partition(": ")
        if key == "architecture" and place.rpartition("/")[2] == "config.json":
            for label in labels_named(text, index, LIBRARIES[::-1]):
                found.setdefault(label, "config.json beside the file")
    return found


def twins_of(spec: ArchitectureSpec) -> tuple[str, ...]:
    """Labels of other networks with this one's names and shapes; () for families and unknown builders.

    A network that both libraries have under one name is the same one.
    """
    index = load_index()
    entry = index.of(spec)
    if entry is None:
        return ()
    own = entry.name.removeprefix("quantized_")  # not quantised yet, it computes the same
    others = [one for one in index.of_layout[entry.layout.number] if one.name.removeprefix("quantized_") != own]
    return tuple(dict.fromkeys(one.label for one in others))


def stated_settings(checkpoint: Checkpoint) -> dict[str, tuple[str, str]]:
    """What the file and the config.json beside it say: key -> (text, where it stands); the file's own come first.

    Keys are dotted as written; of the file's own metadata the last part counts too ("hyper_parameters.num_heads").
    """
    found: dict[str, tuple[str, str]] = {}
    for name, text in checkpoint.own_metadata:
        found.setdefault(name, (text, "the file"))
        found.setdefault(name.rpartition(".")[2], (text, "the file"))
    for name, text in checkpoint.metadata:
        place, _, key = name.partition(": ")
        if place.rpartition("/")[2] in CONFIGS:
            found.setdefault(key, (text, f"{place.rpartition('/')[2]} beside the file"))
    return found


def labels_named(text: str, index: Index, order: tuple[str, ...]) -> tuple[str, ...]:
    """'timm/resnet50.a1_in1k' -> ("timm/resnet50",); () for a name that is not in the index."""
    name = _plain(text)
    if name is None:
        return ()
    for prefix in ("hf-hub:", "hf_hub:"):
        name = name.removeprefix(prefix)
    library, slash, name = name.rpartition("/")
    wanted = (library,) if slash else order
    for bare in (name, name.partition(".")[0]):  # timm writes the weights' tag behind a dot
        for candidate in wanted:
            if candidate in LIBRARIES and index.find(bare, library=candidate) is not None:
                return (f"{candidate}/{bare}",)
    return ()


def _plain(text: str) -> str | None:
    """The string itself: metadata is shown as JSON, as a Python literal, or plain. None for what is no name."""
    if len(text) > LONGEST:
        return None
    text = text.strip()
    if text[:1] == '"':
        try:
            found = json.loads(text)
        except ValueError:
            return None
        return found if isinstance(found, str) else None
    return text.strip("'")
