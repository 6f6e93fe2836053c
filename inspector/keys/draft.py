"""A plan in the making."""

from __future__ import annotations

from dataclasses import dataclass, field

from inspector.keys.keytree import Leaf, Node
from inspector.keys.layouts import Elsewhere
from inspector.keys.report import Step
from inspector.keys.rules.entry import Link


@dataclass(slots=True)
class Draft:
    """A plan in the making. reshaped and missing: what no rule settled; held: waits for the user's choice.

    lost_order: why order places nothing either, where names place nothing. elsewhere: see `Leftovers`.
    """

    source: Node
    target: Node
    steps: list[Step] = field(default_factory=list)
    placed: list[Link] = field(default_factory=list)
    moves: dict[tuple[str, str], list[Link]] = field(default_factory=dict)
    reshaped: list[Link] = field(default_factory=list)
    missing: list[Leaf] = field(default_factory=list)
    held: list[Leaf] = field(default_factory=list)
    lost_order: str = ""
    elsewhere: Elsewhere = Elsewhere.NOTHING
