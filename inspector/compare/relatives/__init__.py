"""What two files whose numbers differ have to do with each other. A new kind is a file and a name here.

The order is that of proof: each later test is asked only where none before it explained the difference.
"""

from __future__ import annotations

from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.compare.relatives import (
    average,
    low_rank,
    permuted,
    pruned,
    quantised,
    shared_start,
    unrelated,
)
from inspector.compare.relatives.subject import Relative, Relatives
from inspector.compare.report import Diff, Verdict

RELATIVES: tuple[Relative, ...] = (
    average.RELATIVE,
    quantised.RELATIVE,
    pruned.RELATIVE,
    low_rank.RELATIVE,
    permuted.RELATIVE,
    shared_start.RELATIVE,
    unrelated.RELATIVE,
)
# Said beside whatever else holds: it explains no numbers.
_BESIDE = {average.RELATIVE.id}


def find_relatives(
    diff: Diff, a: Checkpoint, b: Checkpoint, of_a: dict[str, TensorInfo], of_b: dict[str, TensorInfo]
) -> tuple[tuple[Verdict, ...], tuple[str, ...]]:
    """(what holds, names of tensors that were too large or could not be read). of_a, of_b: compared tensors by name.

    Reads changed matrices again, one pair in memory at a time.
    """
    subject = Relatives(diff=diff, a=a, b=b, of_a=of_a, of_b=of_b)
    if not subject.changed:
        return (), ()
    found: list[Verdict] = []
    for entry in RELATIVES:
        verdict = entry.decide(subject)
        if verdict is not None:
            found.append(verdict)
            if entry.id not in _BESIDE:
                break
    return tuple(found), tuple(subject.left_out)
