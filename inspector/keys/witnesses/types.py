"""What the numbers say of a question that names and shapes leave open."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Bearing(StrEnum):
    """Of the numbers on one option of a question."""

    FOR = "for"
    AGAINST = "against"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What one witness says of one question. It answers none: it stands beside the question.

    question: its id. witness: who says it. options: each option of the question with what is said of it; none of them
    is more than NOTHING where the witness is not sure. agree: in how many of `layers` layers (of a flattened picture:
    of rows) it was so. says: the figure in plain words, one sentence. chosen: the option that the user has chosen, "".
    """

    question: str
    witness: str
    options: tuple[tuple[str, Bearing], ...]
    agree: int
    layers: int
    says: str
    chosen: str = ""

    def which(self, bearing: Bearing) -> tuple[str, ...]:
        """The options of which this is said."""
        return tuple(option for option, said in self.options if said is bearing)

    @property
    def is_silent(self) -> bool:
        """Whether it says nothing of any option."""
        return all(said is Bearing.NOTHING for _, said in self.options)

    @property
    def contradicts(self) -> bool:
        """Whether it speaks against what was chosen."""
        return self.chosen in self.which(Bearing.AGAINST)
