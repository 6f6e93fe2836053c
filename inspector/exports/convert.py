"""Write a state dict as it is, in another format, type or number of files: no target, and no tensor under another name.

A file cut short is refused, unless the user accepts the loss (`salvage`): then what is whole is written, and every
tensor that is left behind is named in the report, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inspector.checkpoint.layout import fraction_lost
from inspector.checkpoint.raw_tensor import read_raw
from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.errors import ExportError, ReadError
from inspector.exports.broken import BrokenTally, find_broken
from inspector.exports.cast import Cast
from inspector.exports.left_behind import left_behind, provenance, unshown
from inspector.exports.report import ExportReport
from inspector.exports.sources import stream_of_tensors
from inspector.exports.write import check_destination, find_writer, write_proved
from inspector.exports.writers import WRITERS
from inspector.exports.writers.entry import Writer
from inspector.progress import Progress, silent
from inspector.units import counted, human_share


def export_as_is(
    checkpoint: Checkpoint,
    state: StateDict,
    destination: Path,
    *,
    writer: str = "pth",
    dtype: str | None = None,
    shard_nbytes: int | None = None,
    salvage: bool = False,
    without_broken: bool = False,
    overwrite: bool = True,
    progress: Progress = silent,
    writers: Sequence[Writer] = WRITERS,
) -> ExportReport:
    """Write the state dict's tensors under their own names, one in memory at a time, verified.

    dtype, shard_nbytes, progress: as `export_repaired`. salvage: leave out what is not whole; `ExportReport.lost` names
    each such tensor, and how much of it is gone. without_broken: leave out tensors that hold NaN or infinity, which
    `ExportReport.broken` names otherwise. Raises ExportError, and leaves no file behind, when a tensor is not
    whole (with salvage: none is), the destination is the source or the disk refuses; UsageError for a writer or type
    that does not exist; ReadError for tensors that are no dense ones (quantised, sparse).
    """
    entry = find_writer(writer, writers)
    destination = Path(destination)
    check_destination(checkpoint, destination, folder=shard_nbytes is not None, overwrite=overwrite)
    whole, cut = _sort(checkpoint, state, read=salvage)
    if cut and not salvage:
        raise ExportError(
            f"Nothing was written: {cut[0]}.",
            hint="Download or copy the file again, or pass --salvage to write what is whole.",
        )
    if not whole:
        raise ExportError(
            f"Nothing was written: none of {counted(len(state.tensors), 'tensor')} of {state.label} is whole.",
            hint="Download or copy the file again.",
        )
    broken = find_broken(checkpoint, whole) if without_broken else ()
    if broken:
        bad = {one.name for one in broken}
        whole = [info for info in whole if info.name not in bad]
        cut += [one.says for one in broken]
        if not whole:
            raise ExportError(
                f"Nothing was written: every tensor of {state.label} holds NaN or infinity.",
                hint="Go back to an earlier checkpoint.",
            )
    tally = BrokenTally(stream_of_tensors(checkpoint, whole, state.versions))
    stream = tally.stream
    cast = Cast(stream, dtype) if dtype is not None else None
    text = provenance(checkpoint, entry, converted_from=checkpoint.origin.name)
    if salvage:
        share = f"{len(whole)} of {len(state.tensors)} tensors"
        text = {"salvaged_from": checkpoint.origin.name, "salvaged": share} if entry.keeps_text else {}
    report = write_proved(
        cast.stream if cast is not None else stream,
        destination,
        entry,
        text,
        shard_nbytes=shard_nbytes,
        overwrite=overwrite,
        progress=progress,
    )
    lost = (*cut, *left_behind(checkpoint, state, entry), *unshown(checkpoint, whole))
    taken = state.label if state.path else ""
    written = {info.name for info in whole}
    return replace(
        report,
        lost=lost + report.lost,
        state=taken,
        cast=cast.report if cast is not None else None,
        left_out=tuple(info.name for info in state.tensors if info.name not in written),
        broken=tuple(one.says for one in tally.found),
    )


def _sort(checkpoint: Checkpoint, state: StateDict, *, read: bool) -> tuple[list[TensorInfo], list[str]]:
    """The tensors that can be read whole, and for each other one a sentence. read: try each, one after the other."""
    whole: list[TensorInfo] = []
    lost: list[str] = []
    for info in state.tensors:
        share = fraction_lost(info, checkpoint.storages)
        if share > 0:
            lost.append(f"{info.name}: {human_share(share)} of it is not in the file")
            continue
        try:
            if read:
                read_raw(checkpoint, info)
        except ReadError as error:
            lost.append(f"{info.name}: {error.says}")
            continue
        whole.append(info)
    return whole, lost
