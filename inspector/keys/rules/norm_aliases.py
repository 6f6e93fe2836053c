"""gamma and beta, g and b, scale, moving_mean where the target's norm layer says weight, bias and running_mean.

Names of TensorFlow's, Keras's, Flax's, Haiku's and Paddle's normalisation layers, of GPT-2's first release, of the
Annotated Transformer and of torchtune, carried over by converters. A layer scale is called gamma rightly, so a rule
fires only on vectors of one length, in a target module of vectors that has the new names and none of the old ones; a
name alone (scale) needs a module that is called a norm.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.keys.placing.roles import NORM_NAME
from inspector.keys.report import Cost, RuleUse
from inspector.keys.rules.entry import Link, Move, Pair, Phrase, Rule, substitution

# Each form whole or not at all.
_FORMS = (
    (("gamma", "weight"), ("beta", "bias")),
    (("g", "weight"), ("b", "bias")),
    (("a_2", "weight"), ("b_2", "bias")),
    (("scale", "weight"), ("shift", "bias")),
    (("scale", "weight"), ("offset", "bias")),
    (("scale", "weight"),),
    (("moving_mean", "running_mean"), ("moving_variance", "running_var")),
    (("moving_mean", "running_mean"), ("moving_var", "running_var")),
    (("_mean", "running_mean"), ("_variance", "running_var")),
    (("mean", "running_mean"), ("var", "running_var")),
    (("mean", "running_mean"), ("variance", "running_var")),
)


def _links(pair: Pair) -> Iterator[Link]:
    done: set[str] = set()
    for form in _FORMS:
        if not done & {name for names in form for name in names} and _fits(form, pair):
            for old, new in form:
                done |= {old, new}
                move = Move(RULE.id, f'call "{old}" of norm layers "{new}"', (("old", old), ("new", new)))
                yield Link(pair.source.leaves[old], pair.target.leaves[new], (move,))


def _fits(form: tuple[tuple[str, str], ...], pair: Pair) -> bool:
    ours, theirs = pair.source.leaves, pair.target.leaves
    if not all(old in ours and new in theirs for old, new in form):
        return False
    if any(old in pair.whole_target.leaves or new in pair.whole_source.leaves for old, new in form):
        return False
    shapes = {ours[old].shape for old, _ in form}
    shapes |= {theirs[new].shape for _, new in form if theirs[new].shape is not None}
    if len(shapes) != 1 or any(len(shape or ()) != 1 for shape in shapes):
        return False
    # Norms hold vectors; a matrix beside them means another layer.
    if any(len(x.shape or ()) > 1 for s, x in pair.whole_target.leaves.items() if s not in BOOKKEEPING):
        return False
    name = pair.whole_target.path[-1].lower() if pair.whole_target.path else ""
    return len(form) > 1 or NORM_NAME.search(name) is not None


def _phrases(use: RuleUse) -> tuple[Phrase, ...]:
    parameters = dict(use.parameters)
    pattern, put = rf"\.{parameters['old']}$", f".{parameters['new']}"
    return (substitution(pattern, put),)


RULE = Rule(
    id="norm-aliases",
    title="gamma and beta",
    says=(
        "Calls gamma and beta (g and b, scale, moving_mean) weight and bias (running_mean) where the target module is "
        "a norm layer without those names."
    ),
    cost=Cost.LOSSLESS,
    done="other names of norm layers' tensors become the target's",
    leaf_links=_links,
    names_suffice=True,
    phrases=_phrases,
)
