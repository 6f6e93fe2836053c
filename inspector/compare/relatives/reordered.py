"""Rows of single tensors in another order that no other tensor follows: the same numbers, and another function."""

from __future__ import annotations

from inspector.compare.relatives.orders import MATCHED, explains, search
from inspector.compare.relatives.subject import Relative, Relatives
from inspector.compare.report import Verdict
from inspector.units import counted


def _decide(subject: Relatives) -> Verdict | None:
    found = search(subject)
    if not explains(found) or not found.lone or len(found.lone) < len(found.moved):
        return None
    exact = found.near == 0 and found.unexplained == 0 and not subject.left_out
    names = found.lone
    shown = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
    how = "to the last bit" if exact else f"with a cosine of {found.lowest:.2f} or more in the median row"
    return Verdict(
        id=RELATIVE.id,
        title=RELATIVE.title,
        says=f"Rows of {counted(len(names), 'single tensor')} ({shown}) are in another order, {how}, and the next "
        "layer does not follow: it computes something else. (Of a last layer or a vocabulary: its classes or words "
        "come in another order.)",
        proved=exact,
        test="rows matched by direction from both sides; the same order looked for in all other tensors",
        number=found.lowest,
        threshold=MATCHED,
        refuted_by="a tensor that reads these channels in the same order",
        subjects=names,
    )


RELATIVE = Relative(
    id="reordered",
    title="Rows in another order",
    says="Rows of tensors are the first's in another order, each in its own, and no other tensor follows: no permuted "
    "copy, since it computes something else.",
    decide=_decide,
)
