"""Queries and keys whose rotary pairs stand side by side on one side and in halves on the other.

Meta's Llama code (and Mistral's consolidated files, torchtune, gpt-fast) turns neighbouring rows, Hugging Face's turns
row i with row i + size/2. The converters permute the rows of each head; names and shapes show nothing of it, and a file
without the permutation loads and answers nonsense. Whoever changes Meta's names for Hugging Face's has that to decide,
so it is asked, with the size of one head, which no shape shows either (rope.freqs, where the file has it, does).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from inspector.keys.report import Ambiguity, Cost, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Rule, settle
from inspector.units import counted

AS_IT_IS = "as-it-is"
_PAIRS = re.compile(r"(^|\.)(attention\.w[qk]|(layers|blocks)\.[0-9]+\.attn\.[qk]_proj)\.(weight|bias)$")
_HALVES = re.compile(r"(^|\.)self_attn\.[qk]_proj\.(weight|bias)$")
_FREQUENCIES = re.compile(r"(^|\.)(rope\.freqs|rotary_emb\.inv_freq|inv_freq)$")
# Sizes of one head that models have, the commonest first.
_USUAL = (128, 64, 80, 96, 256, 112, 192, 160, 32, 48)
_MOST = 12


def _steps(left: Leftovers) -> Iterator[Step]:
    for ours, theirs, way in ((_PAIRS, _HALVES, "halves"), (_HALVES, _PAIRS, "pairs")):
        links = [
            link
            for link in left.settled
            if ours.search(link.source.name) and theirs.search(link.target.name) and link.source.shape
        ]
        if not links:
            continue
        size = _size(links, way, left)
        if size and any(link.target.name in left.turned for link in links):
            return  # one step alone makes a tensor; the finding says that the layout is open
        for link in links:
            if size:
                to = "the halves of Hugging Face" if way == "halves" else "the pairs of Meta"
                says = f"Rotary rows of heads of {size} put into {to}."
                yield settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, value=f"rotary:{size},{way}")


def _size(links: Sequence[Link], way: str, left: Leftovers) -> int:
    """Rows of one head by the user's word, 0 for no change."""
    sizes = _sizes(links, left)
    writer, reader = ("Meta", "Hugging Face") if way == "halves" else ("Hugging Face", "Meta")
    answer = left.questions.ask(
        Ambiguity(
            id=RULE.id,
            question=(
                f"{counted(len(links), 'tensor')} of queries and keys go from {writer}'s names to {reader}'s "
                f"({links[0].source.name} first), whose codes turn their rows in another order. How many rows has one "
                "head (head_dim, the width divided by the number of heads)? Each answer loads."
            ),
            options=(
                *((f"heads-of-{n}", f"{n} rows a head: reorder them as {reader} needs them") for n in sizes),
                (AS_IT_IS, f"none: the rows are in {reader}'s order already, only the names are {writer}'s"),
            ),
        )
    )
    if answer == AS_IT_IS:
        return 0
    # While it is not answered, the plan shows what would be done, and is open.
    return int(answer.rpartition("-")[2]) if answer else (sizes[0] if sizes else 0)


def _sizes(links: Sequence[Link], left: Leftovers) -> list[int]:
    rows = math.gcd(*((link.source.shape or (0,))[0] for link in links))
    shown = {
        2 * (leaf.shape or (0,))[0]
        for leaf in (*left.extra, *left.missing, *(link.source for link in left.settled))
        if _FREQUENCIES.search(leaf.name) and len(leaf.shape or ()) == 1
    }
    sizes = [n for n in range(2, rows + 1, 2) if rows % n == 0]
    sizes = [n for n in sizes if n in shown] or sizes
    usual = [n for n in _USUAL if n in sizes]
    return (usual + [n for n in sizes if n not in usual])[:_MOST]


RULE = Rule(
    id="rotary-halves",
    title="Rotary halves",
    says=(
        "Puts the rows of queries and keys into the order that the target's rotary embedding needs, where names go "
        "from Meta's to Hugging Face's or back; asks for the size of one head."
    ),
    cost=Cost.LOSSLESS,
    done="{tensors} of queries and keys {are} put into the target's rotary order",
    steps=_steps,
)
