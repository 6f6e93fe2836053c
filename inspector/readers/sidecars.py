"""Files beside a checkpoint that say what it is: configurations, hyperparameters, preprocessing.

They are evidence, not part of the file: each entry carries the name of the file it comes from, and whatever is in them
can neither make the opening fail nor slow it down. Nothing is looked for but the names listed here.
"""

from __future__ import annotations

from dataclasses import replace

from inspector.checkpoint.types import Checkpoint, Part
from inspector.errors import InspectorError
from inspector.limits import Limits
from inspector.readers.folder import Folder
from inspector.units import counted

_NBYTES = 1_000_000
READ = "read as evidence"
Pair = tuple[str, str]
# In the order in which they are shown. The first is what most model folders have.
FILES = (
    "config.json",
    "adapter_config.json",
    "preprocessor_config.json",
    "generation_config.json",
    "model_index.json",
    "trainer_state.json",
    "params.json",
    "hparams.yaml",
    "hparams.yml",
    "hparams.json",
    "config.yaml",
    "config.yml",
    "args.json",
    "args.yaml",
    "args.yml",
    "args.txt",
    "open_clip_config.json",
    "classes.txt",
    "labels.txt",
    "class_names.txt",
    "classes.json",
    "labels.json",
    "class_names.json",
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
    for name in FILES:
        nbytes = folder.size_of(name)
        if nbytes is None or prefix + name in known:
            continue
        found, says = _read(folder, name, nbytes)
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


def _read(folder: Folder, name: str, nbytes: int) -> tuple[list[Pair], str]:
    """(entries, what to say about the file)."""
    if nbytes > _NBYTES:
        return [], f"not read: {nbytes:,} bytes, evidence is read up to {_NBYTES:,}"
    # Imported where there is something to read: most files lie alone.
    from inspector.readers.sidecar_texts import read_entries

    try:
        source = folder.open(name)
        try:
            kept, cut = read_entries(source.read(0, min(source.size, _NBYTES)), name)
        finally:
            source.close()
    except (InspectorError, OSError, ValueError, RecursionError, MemoryError) as error:
        says = error.says if isinstance(error, InspectorError) else type(error).__name__
        return [], f"not read: {says[:200]}"
    return kept, f"{READ}, {'the first ' if cut else ''}{counted(len(kept), 'entry', 'entries')}"
