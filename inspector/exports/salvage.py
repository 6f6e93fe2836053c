"""Write what of a state dict is whole in the file, and say what is not: for files cut short, and for any other.

Nothing is renamed and no target is needed. Whoever asks for this accepts a loss; every tensor that is left behind is
named in the report, with the reason.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from inspector.checkpoint.torch_bridge import to_state_dict, to_torch
from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.errors import ExportError, ReadError
from inspector.exports.export import check_destination, find_writer, write_proved
from inspector.exports.report import ExportReport
from inspector.exports.writers import WRITERS
from inspector.exports.writers.entry import Writer
from inspector.progress import Progress, silent
from inspector.readers.noticed.truncation import fraction_lost
from inspector.units import counted, human_share


def export_readable(
    checkpoint: Checkpoint,
    state: StateDict,
    destination: Path,
    *,
    writer: str = "pth",
    progress: Progress = silent,
    writers: Sequence[Writer] = WRITERS,
) -> ExportReport:
    """Write every tensor of the state dict of which all bytes are there, under its own name, verified.

    `ExportReport.lost` names each tensor that is not in the new file, and how much of it is gone.
    Raises ExportError, and leaves no file behind, when no tensor is whole, the destination is the source or the disk
    refuses; UsageError for a writer that does not exist.
    """
    entry = find_writer(writer, writers)
    destination = Path(destination)
    check_destination(checkpoint, destination)
    progress(0, 4, "looking which tensors are whole")
    whole, lost = _sort(checkpoint, state)
    if not whole:
        raise ExportError(
            f"Nothing was written: none of {counted(len(state.tensors), 'tensor')} of {state.label} is whole.",
            hint="Download or copy the file again.",
        )
    made: OrderedDict[str, Tensor] = OrderedDict(to_state_dict(checkpoint, replace(state, tensors=tuple(whole))))
    if state.versions:
        metadata = OrderedDict((path, {"version": version}) for path, version in state.versions)
        made._metadata = metadata  # type: ignore[attr-defined]
    text = {"salvaged_from": checkpoint.origin.name, "salvaged": f"{len(whole)} of {len(state.tensors)} tensors"}
    report = write_proved(made, destination, entry, text if entry.keeps_text else {}, progress=progress)
    return replace(report, lost=(*lost, *(f"{name}: not a tensor" for name in state.others), *report.lost))


def _sort(checkpoint: Checkpoint, state: StateDict) -> tuple[list[TensorInfo], list[str]]:
    """The tensors that can be read whole, and for each other one a sentence."""
    whole: list[TensorInfo] = []
    lost: list[str] = []
    for info in state.tensors:
        share = fraction_lost(info, checkpoint.storages)
        if share > 0:
            lost.append(f"{info.name}: {human_share(share)} of it is not in the file")
            continue
        try:
            to_torch(checkpoint, info)
        except ReadError as error:
            lost.append(f"{info.name}: {error.says}")
            continue
        whole.append(info)
    return whole, lost
