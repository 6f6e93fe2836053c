"""Two checkpoints on the same pictures: which has more right, and whether that may be chance."""

from __future__ import annotations

from inspector.errors import UsageError
from inspector.evaluate.metrics import mcnemar
from inspector.evaluate.report import Comparison, Evaluation, PicturePair, PictureResult

# From here on a difference is called more than chance, as the field does.
SIGNIFICANT = 0.05
MOST_CHANGED = 200


def compare(first: Evaluation, second: Evaluation) -> Comparison:
    """Raises UsageError where they did not score the same pictures of the same folders."""
    if first.data_digest != second.data_digest or [row.path for row in first.rows] != [row.path for row in second.rows]:
        raise UsageError(
            "The two checkpoints did not score the same pictures, so they cannot be compared picture by picture.",
            hint="Leave out what one of them cannot read.",
        )
    pairs = [(a, b) for a, b in zip(first.rows, second.rows, strict=True)]
    only_first = [pair for pair in pairs if pair[0].right and not pair[1].right]
    only_second = [pair for pair in pairs if pair[1].right and not pair[0].right]
    both = sum(a.right and b.right for a, b in pairs)
    changed = [_pair(first, second, pair, "second") for pair in only_second]
    changed += [_pair(first, second, pair, "first") for pair in only_first]
    return Comparison(
        first=first.checkpoint.name,
        second=second.checkpoint.name,
        pictures=len(pairs),
        both=both,
        only_first=len(only_first),
        only_second=len(only_second),
        neither=len(pairs) - both - len(only_first) - len(only_second),
        p_value=mcnemar(len(only_first), len(only_second)),
        changed=tuple(changed[:MOST_CHANGED]),
    )


def _pair(first: Evaluation, second: Evaluation, pair: tuple[PictureResult, PictureResult], right: str) -> PicturePair:
    a, b = pair
    return PicturePair(
        path=a.path,
        label=a.path.partition("/")[0],
        first=first.mapping.names[a.answer],
        second=second.mapping.names[b.answer],
        right=right,
    )
