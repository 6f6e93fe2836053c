"""A permuted copy: the same network with its hidden channels in another order, which every later layer follows."""

from __future__ import annotations

from inspector.compare.relatives.orders import MATCHED, explains, pattern_of, search, vector_moved
from inspector.compare.relatives.subject import Relative, Relatives
from inspector.compare.report import Verdict
from inspector.units import counted


def _decide(subject: Relatives) -> Verdict | None:
    found = search(subject)
    if not explains(found) or len(found.lone) == len(found.moved):
        return None
    vectors = [t for t in subject.changed if t not in subject.weights and t.a is not None and len(t.a.shape) == 1]
    exact = found.near == 0 and found.unexplained == 0 and not subject.left_out
    if exact:
        exact = all(vector_moved(subject, pair, found) for pair in vectors)
    patterns = sorted({word for order in found.moved.values() if (word := pattern_of(order))})
    how = f" The order is {' and '.join(patterns)}." if patterns else ""
    if found.lone:
        how += (
            f" No other tensor follows the order of rows of {', '.join(found.lone[:3])}: what they give is reordered."
        )
    names = tuple(found.moved)
    if exact:
        says = (
            f"A permuted copy: {counted(len(names), 'tensor')} are the first's with rows or columns in another order, "
            f"to the last bit, and each order is the same wherever that channel is read.{how}"
        )
    else:
        says = (
            f"Like a permuted copy that changed since: {counted(len(names), 'tensor')} match the first's once rows or "
            f"columns are put in order, with a cosine of {found.lowest:.2f} or more in the median row.{how}"
        )
    return Verdict(
        id=RELATIVE.id,
        title=RELATIVE.title,
        says=says,
        proved=exact,
        test="rows matched by direction from both sides, columns in the order of the layer before",
        number=found.lowest,
        threshold=MATCHED,
        refuted_by="rows that match several others as well, or none",
        subjects=names,
    )


RELATIVE = Relative(
    id="permuted",
    title="Permuted copy",
    says="Rows and columns of the second are the first's in another order, the same order wherever a channel is read. "
    "Proved where that gives every bit; a likeness where rows only point the same way.",
    decide=_decide,
)
