"""What feeds what, as far as it is known; and what the numbers said of each tensor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: Why nothing is said of a tensor beside a norm whose statistics are those it begins with.
NEVER_TRAINED = "its norm's statistics were never trained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """A batch norm by the names of its four tensors. weight, bias: "" for a norm without them."""

    weight: str
    bias: str
    mean: str
    var: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """Neighbouring channels of a kernel's input.

    norm: that they leave, None where they are not a norm's. activations: what may stand between, by the names of
    `activations.py`; one where it is known. slope: of a leaky one. exact: nothing but that stands between (a maximum
    over a window changes means). why: what stands there, where there is no norm; a clause.
    """

    width: int
    norm: Norm | None
    activations: tuple[str, ...] = ("none",)
    slope: float = 0.01
    exact: bool = True
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A kernel, what comes in and the norm that comes next.

    kernel: "" where the norm takes its input without one. bias: of the kernel, "" for none. offset: where the kernel's
    channels begin among the norm's. certain: a graph tells it, not the order in which modules are defined.
    """

    kernel: str
    bias: str
    feeds: tuple[Feed, ...]
    norm: Norm
    groups: int = 1
    transposed: bool = False
    offset: int = 0
    certain: bool = True

    @property
    def missing(self) -> str:
        """Why nothing is known of a part of the input; "" where all of it leaves norms."""
        return next((feed.why for feed in self.feeds if feed.norm is None), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """links: in the order of the network. loose: tensors that no link reaches, with the reason, a clause."""

    links: tuple[Link, ...]
    loose: tuple[tuple[str, str], ...] = ()


class Standing(StrEnum):
    """What the numbers say of a tensor at its place."""

    PROVED = "proved"
    CONTRADICTED = "contradicted"
    OPEN = "left open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Testimony:
    """Of one tensor. name: the target's. reason: a clause; for a contradiction, what fits there instead."""

    name: str
    standing: Standing
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What the batch norms of a network say about the places of its tensors.

    tensors: every tensor that has a place, in the target's order. chains: how many were tested in full (a norm, a
    kernel, the next norm); held: of them. broken: for each one that cannot be, what was found instead; a sentence.
    certain: a graph told the chains. chance: of any proof in it, were that tensor another one or in another order.
    """

    tensors: tuple[Testimony, ...]
    chains: int
    held: int
    broken: tuple[str, ...]
    certain: bool
    chance: float

    def count(self, standing: Standing) -> int:
        """How many tensors stand so."""
        return sum(1 for one in self.tensors if one.standing is standing)

    @property
    def contradicts(self) -> bool:
        """Whether anything in it speaks against the places."""
        return bool(self.broken) or self.count(Standing.CONTRADICTED) > 0
