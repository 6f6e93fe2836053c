"""Other words for the same parts: to_q where the target says query, layer1.0 where it says stages.0.blocks.0.

Reading two whole trees of names against each other is `placing/by_words.py`; this entry is what is shown. Nothing has
to be accepted: it speaks only where the best reading is ahead of the next best at every place, and lists the words that
it took for one another.
"""

from __future__ import annotations

from inspector.keys.report import Cost
from inspector.keys.rules.entry import Rule

RULE = Rule(
    id="other-words",
    title="Other words for the same parts",
    says=(
        "Reads names by what they mean where another author called the same parts otherwise (to_q for query, layer1.0 "
        "for stages.0.blocks.0), if one reading of all names and shapes is ahead of every other; asks where two are as "
        "good."
    ),
    cost=Cost.LOSSLESS,
    done="{tensors} {are} placed by what names mean",
)
