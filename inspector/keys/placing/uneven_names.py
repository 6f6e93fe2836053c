"""One kind of place that a file calls otherwise in one of its layers: `layers.0.ffn.router` beside `layers.1.ffn.w1`.

Every author calls a part alike in all layers. Where shapes fit, the odd one may be another part, which stands where the
file lacks the layer's own, or a layer of another row that is counted on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from inspector.checkpoint.name_forms import substituted
from inspector.keys.placing.added_words import answered_words, is_telling
from inspector.keys.placing.doubtful import AS_PLACED, LEAVE_OUT, decide
from inspector.keys.placing.kinds import shown
from inspector.keys.placing.roles import is_counter, roles_of
from inspector.keys.placing.synonyms import EMPTY
from inspector.keys.placing.tree import Leaf
from inspector.keys.placing.words import words_of
from inspector.keys.report import Ambiguity, Evidence
from inspector.keys.rules.entry import Link, Questions
from inspector.units import counted

_NUMBER = re.compile(r"[0-9]+")
# A layer that is counted, with parts of its own below; what a Sequential counts are the parts themselves.
_LAYER = re.compile(r"\.[0-9]+(?=\.[^.\n]*[A-Za-z][^.\n]*\.)")


def settle_uneven_names(links: Sequence[Link], questions: Questions) -> tuple[list[Link], list[Leaf]]:
    """(links without doubt or confirmed, tensors held until the user has answered)."""
    if all(link.source.name == link.target.name for link in links):
        return list(links), []
    rows: dict[tuple[str, str], dict[frozenset[str], list[Link]]] = {}
    places = substituted(_LAYER, ".N", [link.target.name for link in links])
    # Numbers are no words: of all layers of a form alike.
    forms = substituted(_NUMBER, "0", [link.source.name for link in links])
    known: dict[tuple[str, str | None], frozenset[str]] = {}
    roles = roles_of([link.source for link in links])
    for link, role, place, form in zip(links, roles, places, forms, strict=True):
        if is_counter(link.source) or place == link.target.name:
            continue
        if (form, role) not in known:
            above, _, _ = form.rpartition(".")
            known[form, role] = _words(above if role is not None and above else form)
        rows.setdefault((place, role or ""), {}).setdefault(known[form, role], []).append(link)
    answered = answered_words(questions)
    doubted: dict[frozenset[str], list[Link]] = {}
    for (place, role), row in rows.items():
        counts = Counter({words: len(found) for words, found in row.items()})
        (usual, _), *others = counts.most_common()
        # Where the others are called as in the target, a word of a network or a kind of layer tells one apart, too.
        strict = bool(others) and usual == _words((place.rpartition(".")[0] if role else place).replace(".N", ""))
        for words, _ in others:
            more = words - usual
            other = strict and (usual - words or _numbers(row[words]) < _numbers(row[usual]))
            own = more if other else frozenset(word for word in more if is_telling(word, usual))
            if own - answered:
                doubted.setdefault(own, []).extend(x for x in row[words] if x.evidence is not Evidence.CHOSEN)
    kept: list[Link] = list(links)
    held: list[Leaf] = []
    for own, group in doubted.items():
        if group:
            word = "_".join(sorted(own))
            kept = decide(questions.ask(_question(word, group), place=word), group, kept, held)
    return kept, held


def _numbers(links: Sequence[Link]) -> int:
    return len(_NUMBER.findall(links[0].source.name))


def _question(word: str, doubted: Sequence[Link]) -> Ambiguity:
    first = doubted[0]
    return Ambiguity(
        id="uneven-names",
        question=(
            f'The file says "{word}" in {counted(len(doubted), "name")}, {first.source.name} as {shown(first.target)} '
            "first, and has another word for the same place of other layers. Is it the same part there?"
        ),
        options=(
            (AS_PLACED, "yes, the same under another name"),
            (LEAVE_OUT, "no, or not known: leave it out"),
        ),
    )


def _words(name: str) -> frozenset[str]:
    return frozenset(words_of(name.replace("/", "_").replace(".", "_"))) - EMPTY
