"""What travels along with the tensors, and what of the file does not stand in the new one."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import span_of
from inspector.checkpoint.types import Checkpoint, StateDict, StateRole, TensorInfo
from inspector.exports.writers.entry import Writer
from inspector.keys.cut_file import NOT_WHOLE
from inspector.keys.report import Step
from inspector.units import counted, human_bytes

_STATES = {
    StateRole.OPTIMIZER: "optimizer state",
    StateRole.TRAINING: "training state",
    StateRole.EMA: "averaged weights",
}


def left_behind(checkpoint: Checkpoint, state: StateDict, entry: Writer) -> tuple[str, ...]:
    """What stood in the file beside this state dict's tensors and does not stand in the new one."""
    lost = []
    texts: list[str] = []
    if not (entry.keeps_text and checkpoint.format == "safetensors"):
        texts += [key for key, _ in checkpoint.own_metadata]
    written = {tensor.path for tensor in state.tensors}
    for other in checkpoint.state_dicts:
        if written.issuperset(tensor.path for tensor in other.tensors):
            continue  # One of several groups that were joined.
        if other.path != state.path and not (other.path[: len(state.path)] == state.path and state.path):
            what = _STATES.get(other.role, "state dict")
            lost.append(f"{other.label}: {what} of {counted(len(other.tensors), 'tensor')}")
            if other.path:
                # What stands within a set that is left out as a whole goes with it.
                within = f"{'.'.join(other.path)}."
                texts = [key for key in texts if not key.startswith(within)]
    # Whole sets first: they are the larger loss.
    lost += [key for key in texts if key not in state.others]
    lost += [f"{name}: not a tensor" for name in state.others]
    lost += [f"{key}: a key that is no text" for key, _ in state.odd_keys]
    if state.is_module:
        lost.append(f"the module object itself ({state.kind}); its tensors are kept")
    return tuple(dict.fromkeys(lost))


def why_dropped(step: Step) -> str:
    """Why a tensor that a plan leaves out is not in the new file."""
    return "not whole in the file" if step.reason == NOT_WHOLE else "left out"


def provenance(checkpoint: Checkpoint, entry: Writer, **further: str) -> dict[str, str]:
    """The file's own metadata where both formats have it, and where the new file came from."""
    if not entry.keeps_text:
        return {}
    kept = dict(checkpoint.own_metadata) if checkpoint.format == "safetensors" else {}
    text = {**kept, **further}
    if checkpoint.origin.sha256:
        text[f"{next(iter(further))}_sha256"] = checkpoint.origin.sha256
    return text


def unshown(checkpoint: Checkpoint, tensors: Iterable[TensorInfo]) -> tuple[str, ...]:
    """What saving slices of large tensors left in the file: bytes of the storages behind these that no tensor shows."""
    spans: dict[str, list[tuple[int, int]]] = {}
    wanted = {t.storage_id for t in tensors}
    for info in checkpoint.tensors:
        if info.storage_id in wanted and info.storage_id is not None and info.dtype in DTYPES:
            size = DTYPES[info.dtype].itemsize
            first, end = span_of(info)
            spans.setdefault(info.storage_id, []).append((first * size, end * size))
    unused = 0
    for storage_id, found in spans.items():
        storage = checkpoint.storages.get(storage_id)
        reached = covered = 0
        for low, high in sorted(found):
            covered += max(0, high - max(low, reached))
            reached = max(reached, high)
        unused += max(0, storage.nbytes - covered) if storage is not None else 0
    return (f"{human_bytes(unused)} of storages that no tensor shows",) if unused else ()
