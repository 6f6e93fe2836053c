"""Two of a visitor's files held against each other."""

from __future__ import annotations

from inspector.compare.diff import compare_checkpoints
from inspector.compare.report import Diff
from inspector.jobs.bench import Bench
from inspector.jobs.kind import MB
from inspector.jobs.kinds.files import checkpoint_of, state_of
from inspector.jobs.subjects import FileRef

# The largest matrix that is looked at again, twice as float64 and once more for what is made of it.
_A_NUMBER = 40
_FORESEEN_NBYTES = 400 * MB


def difference(bench: Bench, first: FileRef, second: FileRef) -> Diff:
    """What the second is to the first."""
    a, b = checkpoint_of(bench, first), checkpoint_of(bench, second)
    one, two = state_of(a, first), state_of(b, second)
    state = one or a.weights
    largest = max((t.numel for t in (state.tensors if state else a.tensors)), default=0)
    if _A_NUMBER * largest > _FORESEEN_NBYTES:
        bench.need(min(_A_NUMBER * largest, 2000 * MB))
    return compare_checkpoints(a, b, a_state=one, b_state=two, progress=bench.progress)
