"""A plan in the making."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from inspector.keys.placing.layouts import Elsewhere
from inspector.keys.placing.provenance import Library
from inspector.keys.placing.tree import Leaf, Node
from inspector.keys.report import Step
from inspector.keys.rules.entry import Link, Move, Rule


@dataclass(slots=True)
class Draft:
    """A plan in the making. reshaped and missing: what no rule settled; held: waits for the user's choice.

    lost_order: why order places nothing either, where names place nothing. elsewhere, writer, reader:
    see `Leftovers`.
    rules: those that it is made by, by their ids. moves: by `Move.key`, the tensors that each was done to, and how.
    """

    source: Node
    target: Node
    rules: Mapping[str, Rule] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    placed: list[Link] = field(default_factory=list)
    moves: dict[tuple[object, ...], list[tuple[Link, Move]]] = field(default_factory=dict)
    reshaped: list[Link] = field(default_factory=list)
    missing: list[Leaf] = field(default_factory=list)
    held: list[Leaf] = field(default_factory=list)
    # Links whose shapes differed until a step put their axes in order.
    permuted: list[Link] = field(default_factory=list)
    # Places whose tensor a step so far puts into another order.
    turned: frozenset[str] = frozenset()
    lost_order: str = ""
    elsewhere: Elsewhere = Elsewhere.NOTHING
    writer: Library | None = None
    reader: Library | None = None

    def steps_by(self, which: Callable[[Rule], bool]) -> list[Step]:
        """The steps of such rules."""
        ids = {rule.id for rule in self.rules.values() if which(rule)}
        return [step for step in self.steps if step.rule in ids]

    @property
    def unplaced(self) -> list[str]:
        """Tensors that are left out since the target has no place for them."""
        return [s.source for s in self.steps_by(lambda rule: rule.drops_unplaced) if s.source is not None]

    @property
    def not_chosen(self) -> set[str]:
        """Tensors that are left out since the user took others."""
        steps = self.steps_by(lambda rule: rule.is_choice)
        return {step.source for step in steps if step.source is not None and step.target is None}
