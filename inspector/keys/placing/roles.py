"""What a tensor is for, as far as its leaf name and its neighbours say, so that two sequences can be compared.

A token is (role, shape). Roles tell a norm's weight from its mean, which no shape does; a leaf name that says nothing
has the role None, which contradicts no other. Counters carry no weight and are set aside before comparing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache

from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.checkpoint.types import Shape
from inspector.keys.placing.tree import Leaf

# Leaf names of one meaning, from torch, Keras and TensorFlow, Flax, and GPT-2's first release.
_ROLES = {
    "weight": "weight",
    "gamma": "weight",
    "kernel": "weight",
    "g": "weight",
    "scale": "weight",
    "shift": "bias",
    "bias": "bias",
    "beta": "bias",
    "b": "bias",
    # The Annotated Transformer's norms.
    "a_2": "weight",
    "b_2": "bias",
    "running_mean": "mean",
    "moving_mean": "mean",
    "running_var": "variance",
    "moving_variance": "variance",
    # Other quantities than those beside which they are offered by shape: roots, logarithms, inverses.
    "running_std": "deviation",
    "std": "deviation",
    "temperature": "temperature",
    "logit_scale": "logarithm of an inverse temperature",
    "log_temperature": "logarithm of a temperature",
}
# What is worked out of a variance or a scale and is none: copied for one it would load and mean something else.
_WORKED_OUT = re.compile(
    r"(running_|moving_|saved_|batch_)?(?:(?P<logarithm>log_?)(?:var(iance)?|std|sigma|scale)"
    r"|(?P<inverse>(inv|inverse|r|i)_?(var(iance)?|std(_?dev)?|sigma|scale)|riv|rsqrt|precision)"
    r"|(?P<deviation>std(_?dev)?|stdev|sigma))"
)
_LOCATIONS = frozenset({"center", "loc", "location"})
_DEVIATIONS = frozenset({"scale", "width", "spread"})
# What such a number is called in a sentence.
OTHER_QUANTITIES = ("logarithm", "inverse", "deviation", "mean")
# Parts of a checkpoint that were trained beside the network, or in it and are not asked in evaluation.
LOSSES = (
    r"(^|\.)(criterion|loss(es|_fn|_func)?|[a-z_]*metrics?"
    r"|online_(eval|probe|class|linear|fine)[a-z_]*|(train|val|test)_(acc|f1|auroc)[a-z_]*)\."
)
AUXILIARY = r"(^|\.)(AuxLogits|aux[0-9]*|aux_classifier|auxiliary_head|aux_head)\."
# A module that is called a norm.
NORM_NAME = re.compile(r"norm|(^|[^a-z])(ln|bn|gn)([^a-z]|$)", re.IGNORECASE)
# A layer scale is called gamma, too; then it has no beta beside it. What is scaled and shifted is a norm's.
_PARTNER = {"gamma": "beta", "g": "b", "scale": "shift", "shift": "scale", "a_2": "b_2", "b_2": "a_2"}
# Leaf names that say it whatever stands beside them.
_ALONE: dict[str, str | None] = {
    leaf: role for leaf, role in _ROLES.items() if leaf not in _PARTNER and leaf not in _DEVIATIONS
}
# Nor does anything make counters a part of the layer.
_ALONE |= dict.fromkeys(BOOKKEEPING)


def split_name(name: str) -> tuple[str, str]:
    """'layer1.0.conv1.weight' -> ('layer1.0.conv1', 'weight'); '' for a tensor at the top."""
    module, _, leaf = name.rpartition(".")
    return module, leaf


def own_role(leaf: Leaf) -> str | None:
    """The role of a tensor whose neighbours are not looked at."""
    return _role(leaf.name, frozenset())


def roles_of(leaves: Sequence[Leaf], beside: Collection[Leaf] = ()) -> list[str | None]:
    """One role per leaf, None where the name does not say. beside: what stands in the same file as well."""
    names: set[str] = set()
    roles = []
    for leaf in leaves:
        last = leaf.name.rpartition(".")[2]
        if last in _ALONE:
            roles.append(_ALONE[last])
            continue
        names = names or {x.name for x in (*leaves, *beside)}
        roles.append(_role(leaf.name, names))
    return roles


def _role(name: str, names: Collection[str]) -> str | None:
    module, leaf = split_name(name)
    partner = _PARTNER.get(leaf)
    beside = f"{module}." if module else ""
    # Of what is taken off and divided by, neither is what a norm adds or multiplies by.
    if leaf in _LOCATIONS:
        return "mean"
    if leaf in _DEVIATIONS and any(beside + other in names for other in _LOCATIONS):
        return "deviation"
    if partner is not None and beside + partner not in names:
        return None
    if leaf in _ROLES:
        return _ROLES[leaf]
    if (worked_out := _worked_out(leaf)) is not None:
        return worked_out
    # in_proj_weight, q_bias: the last word says it.
    return _ROLES.get(leaf.rpartition("_")[2]) if leaf.endswith(("_weight", "_bias")) else None


@lru_cache(maxsize=4096)
def _worked_out(last: str) -> str | None:
    found = _WORKED_OUT.fullmatch(last)
    return next((kind for kind in OTHER_QUANTITIES[:3] if found[kind]), None) if found is not None else None


def is_other_quantity(ours: str | None, theirs: str | None) -> bool:
    """Whether of two roles one is a quantity worked out of another, and the other is not that one."""
    return (
        ours != theirs and ours is not None and theirs is not None and not {ours, theirs}.isdisjoint(OTHER_QUANTITIES)
    )


def is_counter(leaf: Leaf) -> bool:
    """A counter by its name, of one element or of unknown shape."""
    return (not leaf.shape or leaf.shape == (1,)) and leaf.name.rpartition(".")[2] in BOOKKEEPING


def squeezed(shape: Shape | None) -> Shape | None:
    """Without dimensions of one: a 1x1 convolution as the matrix it is, a layer scale (C, 1, 1) as (C,)."""
    return shape if shape is None or 1 not in shape else tuple([n for n in shape if n != 1])


def ways(one: Sequence[Leaf], other: Sequence[Leaf]) -> float | None:
    """log10 of how many placements by shape alone there are, None when the shapes do not agree as multisets."""
    ours, theirs = Counter(leaf.shape for leaf in one), Counter(leaf.shape for leaf in other)
    if ours != theirs:
        return None
    return sum(math.lgamma(count + 1) for count in ours.values()) / math.log(10)
