"""Matrices stored the other way round: (in, out) as Keras and GPT-2's Conv1D have them, where torch has (out, in).

A shape shows it unless the matrix is square. A square one goes as the others of its block go, when they are of one
mind; else the user is asked, since either way loads. A file in which every matrix is square shows nothing and stays as
it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from inspector.keys.keytree import numbered
from inspector.keys.report import Ambiguity, Cost, Step, StepKind
from inspector.keys.roles import roles_of, split_name
from inspector.keys.rules.entry import Leftovers, Link, Questions, Rule, settle
from inspector.units import counted

TRANSPOSED, AS_IT_IS = "transposed", "as-it-is"
_OPTIONS = (
    (TRANSPOSED, "the file has it as (in, out): transpose"),
    (AS_IT_IS, "the file has it as (out, in), as torch does"),
)


def _is_matrix(link: Link) -> bool:
    return len(link.target.shape or ()) == 2 and roles_of([link.target])[0] == "weight"


def _is_turned(link: Link) -> bool:
    ours, theirs = link.source.shape or (), link.target.shape or ()
    return _is_matrix(link) and ours != theirs and ours == theirs[::-1]


def has_bias(link: Link, there: Mapping[str, Link]) -> bool:
    """Whether a bias beside it says which of the two sizes is the layer's output."""
    module, leaf = split_name(link.target.name)
    name = leaf.removesuffix("weight") + "bias"
    bias = there.get(f"{module}.{name}" if module else name)
    return bias is not None and bias.source.shape == (link.target.shape or ())[:1]


def _steps(left: Leftovers) -> Iterator[Step]:
    turned = [link for link in left.reshaped if _is_turned(link)]
    if not turned:
        return
    there = {link.target.name: link for link in left.settled}
    # While it is not answered, the plan shows what would be done, and is open.
    if not any(has_bias(link, there) for link in turned) and ask_turned(turned, left.questions) == AS_IT_IS:
        return
    for link in turned:
        says = "(in, out) in the file, (out, in) in the target."
        yield settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, axes=(1, 0))
    decided = {link.target.name: True for link in turned}
    plain = [link for link in left.settled if _is_matrix(link)]
    squares = [link for link in plain if len(set(link.target.shape or ())) == 1 and (link.target.shape or (0,))[0] > 1]
    alone = {link.target.name for link in squares}
    decided |= {link.target.name: False for link in plain if link.target.name not in alone}
    for link in squares:
        if _way(link, decided, left.questions):
            says = "Square, and stored the other way round as the other matrices of its block are."
            yield settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, axes=(1, 0))


def _way(link: Link, decided: Mapping[str, bool], questions: Questions) -> bool:
    """Whether a square matrix is transposed: as its nearest neighbours inside its block, or as the user says."""
    path = split_name(link.target.name)[0].split(".")
    for depth in range(len(path) - 1, 0, -1):
        block = path[:depth]
        ways = {way for name, way in decided.items() if name.startswith(".".join(block) + ".")}
        if len(ways) == 1:
            return ways.pop()
        if ways or numbered(block[-1]) is not None:
            break
    if len(path) == 1:
        # A network without blocks: its layers are each other's neighbours.
        ways = {way for name, way in decided.items() if name.count(".") == 1}
        if len(ways) == 1:
            return ways.pop()
    return ask_turned([link], questions) == TRANSPOSED


def ask_turned(links: Sequence[Link], questions: Questions) -> str | None:
    first = links[0]
    more = f" (and {counted(len(links) - 1, 'more matrix')})" if links[1:] else ""
    return questions.ask(
        Ambiguity(
            id="transposed",
            question=(
                f"Is {first.source.name}{more} stored as (in, out), the other way round than torch's? Nothing beside "
                "it tells, and a wrong one loads just as well."
            ),
            options=_OPTIONS,
        ),
        place=split_name(first.target.name)[0],
    )


RULE = Rule(
    id="transposed",
    title="Transposed matrices",
    says=(
        "Transposes linear layers stored as (in, out), as Keras and Conv1D do; square ones go as the others of their "
        "block, or are asked about."
    ),
    cost=Cost.LOSSLESS,
    done="{tensors} {are} transposed",
    steps=_steps,
)
