"""Which program wrote a checkpoint, as far as its own words tell: versions it notes, keys and classes only it uses."""

from __future__ import annotations

import re
from dataclasses import dataclass

from inspector.checkpoint.types import Checkpoint

_VERSION = re.compile(r"[0-9][0-9A-Za-z.+\-]{0,30}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """What one program leaves behind. Any of them is enough.

    version: metadata keys (their last dotted part, or all of it) whose value is the program's version.
    keys: metadata or tree keys at the root that must all be there. package: of a class that the file names.
    """

    says: str
    version: tuple[str, ...] = ()
    keys: frozenset[str] = frozenset()
    package: str = ""


# The most particular first: Lightning files also hold what a plain training script would.
CLUES: tuple[Clue, ...] = (
    Clue(says="PyTorch Lightning", version=("pytorch-lightning_version",)),
    Clue(says="DeepSpeed", version=("ds_version",)),
    Clue(says="MMEngine", version=("mmengine_version",)),
    Clue(says="MMCV", version=("mmcv_version",)),
    Clue(says="diffusers", version=("_diffusers_version", "diffusers_version")),
    Clue(says="transformers", version=("transformers_version",)),
    Clue(says="PEFT", version=("peft_version",), keys=frozenset({"peft_type"})),
    Clue(says="Ultralytics", package="ultralytics"),
    Clue(says="Ultralytics", keys=frozenset({"train_args", "train_metrics"})),
    Clue(says="YOLOv5", keys=frozenset({"best_fitness", "model", "ema", "wandb_id"})),
    Clue(says="timm", keys=frozenset({"arch", "metric", "version", "state_dict"})),
    Clue(says="detectron2", keys=frozenset({"__author__", "matching_heuristics"})),
    Clue(says="fairseq", keys=frozenset({"optimizer_history", "extra_state", "model"})),
    Clue(says="sd-scripts", version=("ss_sd_scripts_commit_hash",), keys=frozenset({"ss_network_module"})),
    Clue(says="fastai", package="fastai"),
    Clue(says="SpeechBrain", package="speechbrain"),
    Clue(says="Flair", package="flair"),
    Clue(says="stanza", package="stanza"),
    Clue(says="timm", package="timm"),
    Clue(says="torchvision", package="torchvision"),
    Clue(says="MLX", keys=frozenset({"format=mlx"})),
)
_BY_FORMAT = {
    "torch-zip": "torch.save",
    "torch-legacy": "torch.save",
    "torch-tar": "torch.save",
    "torchscript": "torch.jit",
    "torch-export": "torch.export",
    "torch-package": "torch.package",
    "dcp": "torch.distributed",
    "npy": "numpy",
    "npz": "numpy",
}


def producer_of(checkpoint: Checkpoint, clues: tuple[Clue, ...] = CLUES) -> str:
    """ "PyTorch Lightning 2.1.0", "timm", "torch.save"; "" when nothing tells."""
    metadata = {key.rpartition(": ")[2]: value for key, value in checkpoint.metadata}
    if metadata.get("producer_name"):  # An ONNX model names its own.
        return f"{metadata['producer_name']} {metadata.get('producer_version', '')}".strip()[:80]
    last = {key.rpartition(".")[2]: value for key, value in metadata.items()}
    keys = {label for label, _ in checkpoint.root.children[:200]} | set(metadata)
    keys |= {f"{key}={value}" for key, value in metadata.items() if key == "format"}
    packages = {use.name.partition(".")[0] for use in checkpoint.globals}
    for clue in clues:
        for key in clue.version:
            found = _VERSION.fullmatch(metadata.get(key, last.get(key, "")).strip("'\""))
            if found:
                return f"{clue.says} {found[0]}"
        if (clue.keys and clue.keys <= keys) or (clue.package and clue.package in packages):
            return clue.says
    return _BY_FORMAT.get(checkpoint.format, "")
