"""What is wrong with a DeepSpeed ZeRO folder, and what in it was not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.checks.contents import UNREADABLE_ITEMS
from inspector.readers.checks.truncation import CUT_SHORT
from inspector.readers.folders.deepspeed.layout import Layout, Save
from inspector.units import counted, human_share

LATEST_MISSING = FindingKind("latest-missing", Severity.WARNING, "The save that is called latest is missing")
OPTIMIZER_FILES = FindingKind("optimizer-files", Severity.ERROR, "Optimizer files do not match the partitions")
WEIGHTS_NOT_ASSEMBLED = FindingKind(
    "weights-not-assembled", Severity.ERROR, "The fp32 weights could not be put together"
)
TENSOR_PARALLEL_RANKS = FindingKind(
    "tensor-parallel-ranks", Severity.WARNING, "The model is split over tensor-parallel ranks"
)
PROGRAM_IN_FOLDER = FindingKind("program-in-folder", Severity.INFO, "The folder brings a program")

_LISTED = 20


def latest_missing(layout: Layout, save: Save) -> list[Finding]:
    """`latest` names a save that is not there."""
    if not layout.latest_file or layout.latest in layout.saves:
        return []
    return [
        LATEST_MISSING.found(
            f"`{layout.latest_file}` names the save {layout.latest[:80]!r}, which is not in the folder; "
            f"shown is {save.tag or 'the folder itself'!r}.",
            subjects=(layout.latest[:200],),
            evidence=(("saves", len(layout.saves)),),
            remedy="Copy that save too, or write the name of one that is there into the file.",
        )
    ]


def missing_ranks(missing: Sequence[str], ranks: int, there: int, lost: Mapping[str, float]) -> list[Finding]:
    """Fewer optimizer files than partitions, with what the weights lose."""
    if ranks == there:
        return []
    worst = sorted(lost.items(), key=lambda item: -item[1])
    loses = (
        f" {counted(len(worst), 'weight loses', 'weights lose')} elements, most {worst[0][0][:80]}: "
        f"{human_share(worst[0][1])}."
        if worst
        else ""
    )
    first = f", first {missing[0][:80]}" if missing else ""
    return [
        OPTIMIZER_FILES.found(
            f"The weights are cut into {counted(ranks, 'partition')}; there {'is' if there == 1 else 'are'} "
            f"{counted(there, 'optimizer file')}{first}.{loses}",
            subjects=tuple(name[:200] for name, _ in worst[:_LISTED]),
            evidence=(
                ("partitions", ranks),
                ("files", there),
                *((f"lost of {name[:80]}", share) for name, share in worst[:_LISTED]),
            ),
            remedy="Copy the files of all ranks; each node may have kept its own. If there are too many, some are left "
            "over from an earlier save.",
        )
    ]


def cut_short(lost: Mapping[str, float]) -> list[Finding]:
    """Every file is there, and yet elements are missing."""
    worst = sorted(lost.items(), key=lambda item: -item[1])
    if not worst:
        return []
    return [
        CUT_SHORT.found(
            f"{counted(len(worst), 'weight loses', 'weights lose')} elements because a file is cut short, most "
            f"{worst[0][0][:80]}: {human_share(worst[0][1])}.",
            subjects=tuple(name[:200] for name, _ in worst[:_LISTED]),
            evidence=tuple((f"lost of {name[:80]}", share) for name, share in worst[:_LISTED]),
            remedy="Copy that file again; the other weights can be read.",
        )
    ]


def not_assembled(label: str, why: str) -> list[Finding]:
    """The fp32 weights could not be put together."""
    if not why:
        return []
    return [
        WEIGHTS_NOT_ASSEMBLED.found(
            f"The {label} could not be put together: {why}.",
            evidence=(("why", why[:200]),),
            remedy="The 16-bit weights in the model file may still serve; DeepSpeed's own script refuses too.",
        )
    ]


def parallel_ranks(numbers: Sequence[int]) -> list[Finding]:
    """Several tensor-parallel ranks: each has slices of the weights, and only the model knows how they join."""
    if len(numbers) < 2:
        return []
    return [
        TENSOR_PARALLEL_RANKS.found(
            f"The model was split over {len(numbers)} tensor-parallel ranks (mp_rank_{numbers[0]:02d} to "
            f"mp_rank_{numbers[-1]:02d}). They are shown one by one and not merged: along which axis each weight was "
            "split is not in the files.",
            evidence=(("ranks", len(numbers)),),
            remedy="Convert it to a universal checkpoint with ds_to_universal.py on your machine, and open that.",
        )
    ]


def program(name: str, nbytes: int) -> list[Finding]:
    """DeepSpeed copies its conversion script into every folder."""
    return [
        PROGRAM_IN_FOLDER.found(
            f"The folder brings a program, {name[:80]} ({nbytes:,} bytes). It was not run; the fp32 "
            "weights are put together here.",
            subjects=(name[:200],),
            evidence=(("nbytes", nbytes),),
            remedy="Anybody can write into that file. Use the script of your own DeepSpeed instead.",
        )
    ]


def unreadable(items: Sequence[str]) -> list[Finding]:
    """Files that cannot be opened."""
    if not items:
        return []
    return [
        UNREADABLE_ITEMS.found(
            f"{counted(len(items), 'file')} cannot be read: {items[0][:300]}",
            subjects=tuple(item.partition(": ")[0][:200] for item in items[:_LISTED]),
            evidence=(("files", len(items)),),
            remedy="Copy them again; what the others hold is shown.",
        )
    ]
