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
    reordered,
    same_direction,
    unrelated,
)
from inspector.compare.relatives.subject import Relative, Relatives
from inspector.compare.report import Diff, Verdict
from inspector.compare.verdicts import broken, settles

RELATIVES: tuple[Relative, ...] = (
    average.RELATIVE,
    quantised.RELATIVE,
    pruned.RELATIVE,
    low_rank.RELATIVE,
    permuted.RELATIVE,
    reordered.RELATIVE,
    same_direction.RELATIVE,
    unrelated.RELATIVE,
)
# Said beside whatever else holds: it explains no numbers.
_BESIDE = {average.RELATIVE.id}


def find_relatives(
    diff: Diff, a: Checkpoint, b: Checkpoint, of_a: dict[str, TensorInfo], of_b: dict[str, TensorInfo]
) -> tuple[tuple[Verdict, ...], tuple[str, ...], tuple[str, ...]]:
    """(what holds, names of tensors that were too large or could not be read, sentences about tests that failed).

    of_a, of_b: compared tensors by name. Reads changed matrices again, one pair in memory at a time. Where a verdict of
    the diff leaves nothing to be explained, only what is said beside it is asked.
    """
    subject = Relatives(diff=diff, a=a, b=b, of_a=of_a, of_b=of_b)
    if not subject.changed:
        return (), (), ()
    found: list[Verdict] = []
    failed: list[str] = []
    explained = any(verdict.proved for verdict in diff.verdicts)
    for entry in RELATIVES:
        beside = entry.id in _BESIDE
        if not beside and (settles(diff.verdicts) or (entry.likeness and explained)):
            continue
        try:
            verdict = entry.decide(subject)
        except Exception as error:  # noqa: BLE001 - files are hostile: one test that breaks must not end the comparison
            failed.append(broken(entry.title, error))
            continue
        if verdict is not None:
            found.append(verdict)
            if not beside:
                break
    return tuple(found), tuple(subject.left_out), tuple(failed)
