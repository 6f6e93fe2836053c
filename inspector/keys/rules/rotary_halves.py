"""Queries and keys whose rotary pairs stand side by side on one side and in halves on the other.

Meta's Llama code (and Mistral's consolidated files, torchtune, gpt-fast) turns neighbouring rows, Hugging Face's turns
row i with row i + size/2. The converters permute the rows of each head; names and shapes show nothing of it, and a file
without the permutation loads and answers nonsense. Whoever changes Meta's names for Hugging Face's has that to decide,
so it is asked, with the size of one head, which no shape shows either (rope.freqs, where the file has it, does). Where
the names prove both codes and rope.freqs the size, nothing is left to ask.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from inspector.keys.report import FILE, Ambiguity, Cost, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Rule, settle
from inspector.units import counted

AS_IT_IS = "as-it-is"
# Codes that turn neighbouring rows: Meta's (also Mistral's) and llama.cpp's for what Meta's code runs.
_PAIRS = re.compile(r"(^|\.)(attention\.w[qk]|blk\.[0-9]+\.attn_[qk])\.(weight|bias)$")
_TUNE = re.compile(r"(^|\.)layers\.[0-9]+\.attn\.[qk]_proj\.(weight|bias)$")
_HALVES = re.compile(r"(^|\.)self_attn\.[qk]_proj\.(weight|bias)$")
_ANY = re.compile(
    r"(^|[._])(q|k|q_proj|k_proj|query|key|to_q|to_k|wq|wk|linear_q|linear_k|q_lin|k_lin)\.(weight|bias)$"
)
_FREQUENCIES = re.compile(r"(^|\.)(rope\.freqs|rotary_emb\.inv_freq|inv_freq)$")
_IN_PROJ = ".in_proj_weight"
# Sizes of one head that models have, the commonest first.
_USUAL = (128, 64, 80, 96, 256, 112, 192, 160, 32, 48)
_MOST = 12


def _way(link: Link) -> str:
    """ "halves" where the rows of pairs may have to become halves, "pairs" for the way back, "" for none."""
    ours, theirs = link.source.name, link.target.name
    if ours == theirs or not (_may_turn(ours) and _may_turn(theirs)):
        return ""
    if _PAIRS.search(ours):
        return "halves" if _ANY.search(theirs) and not _PAIRS.search(theirs) else ""
    if _PAIRS.search(theirs):
        return "pairs" if _ANY.search(ours) else ""
    if _HALVES.search(ours) and _TUNE.search(theirs):
        return "pairs"
    return "halves" if _TUNE.search(ours) and _HALVES.search(theirs) else ""


def _may_turn(name: str) -> bool:
    """Whether it is a query's or a key's: each of the patterns asks for that, of the last two words."""
    return _is_any(".".join(name.rsplit(".", 2)[-2:]))


@lru_cache(maxsize=1024)
def _is_any(end: str) -> bool:
    """Of thousands of layers few ends differ."""
    return _ANY.search(end) is not None


def _steps(left: Leftovers) -> Iterator[Step]:
    ways = [(link, way) for link in (*left.settled, *left.permuted) if link.source.shape and (way := _way(link))]
    if ways:
        # torch.nn.MultiheadAttention, which is cut into its parts here, rotates nothing.
        plain = {t.name.removesuffix(_IN_PROJ) for t in left.target.tensors if t.name.endswith(_IN_PROJ)}
        ways = [(link, way) for link, way in ways if link.target.name.rsplit(".", 2)[0] not in plain]
    for way in ("halves", "pairs"):
        links = [link for link, found in ways if found == way]
        if not links:
            continue
        size = _size(links, way, left)
        for link in links:
            if size:
                a, b = (size // 2, 2) if way == "halves" else (2, size // 2)
                to = "halves, as Hugging Face has them" if way == "halves" else "pairs, as Meta has them"
                says = f"Rotary rows of heads of {size} put into {to}."
                # One step alone makes a tensor: this one transposes it, too.
                value = f"rows:{a},{b}{',turned' if link.target.name in left.turned else ''}"
                yield settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, value=value)


def _size(links: Sequence[Link], way: str, left: Leftovers) -> int:
    """Rows of one head by the user's word, 0 for no change."""
    sizes, shown = _sizes(links, left)
    if shown and len(sizes) == 1 and _is_proved(left):
        return sizes[0]
    into = "from pairs into halves" if way == "halves" else "from halves into pairs"
    answer = left.questions.ask(
        Ambiguity(
            id=RULE.id,
            question=(
                f"{counted(len(links), 'tensor')} of queries and keys get the names of another code, "
                f"{links[0].source.name} as {links[0].target.name} first. Meta's code, torchtune and llama.cpp turn "
                "neighbouring rows of a head, Hugging Face's turns its halves, and nothing shows which the file is "
                f"in. Do the rows go {into}, and how many has one head (head_dim, the width divided by the "
                "number of heads)? Each answer loads."
            ),
            options=(
                *((f"heads-of-{n}", f"yes, {n} rows a head: reorder them {into}") for n in sizes),
                (AS_IT_IS, "no: the rows are in the target's order already, or nothing rotates them"),
            ),
            side=FILE,
        )
    )
    if answer == AS_IT_IS:
        return 0
    # While it is not answered, the plan shows what would be done, and is open.
    return int(answer.rpartition("-")[2]) if answer else (sizes[0] if sizes else 0)


def _is_proved(left: Leftovers) -> bool:
    """Whether the names prove both sides: Meta's code, which turns neighbours, and transformers, which turns halves."""
    sides = [library.id for library in (left.writer, left.reader) if library is not None]
    return sorted(sides) == ["meta", "transformers-llama"]


def _sizes(links: Sequence[Link], left: Leftovers) -> tuple[list[int], bool]:
    """(rows that one head can have, the commonest first; whether rotary frequencies in the file tell them)."""
    rows = math.gcd(*((link.target.shape or (0,))[0] for link in links))
    shown = {
        2 * (leaf.shape or (0,))[0]
        for leaf in (*left.extra, *left.missing, *(link.source for link in left.settled))
        if _FREQUENCIES.search(leaf.name) and len(leaf.shape or ()) == 1
    }
    sizes = [n for n in range(2, rows + 1, 2) if rows % n == 0]
    told = [n for n in sizes if n in shown]
    sizes = told or sizes
    usual = [n for n in _USUAL if n in sizes]
    return (usual + [n for n in sizes if n not in usual])[:_MOST], bool(told)


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
