"""Tensors that one side has as one and the other in several, as a rule names them (`stand_ins.py` places them)."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.keys.placing.tree import Leaf


@dataclass(frozen=True, slots=True)
class Piece:
    """One part of a whole. rows: its run in a group."""

    leaf: Leaf
    rows: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recast:
    """One tensor that is looked at as several. whole: the file's, or the target's if in_target.

    value: of the step. turned: the whole lies (in, out).
    proved: the order of the parts is shown, not the user's word or the default.
    oriented: which way round the parts lie is known, also of square ones.
    """

    rule: str
    reason: str
    whole: Leaf
    pieces: tuple[Piece, ...]
    in_target: bool
    value: str
    turned: bool = False
    proved: bool = False
    oriented: bool = False
    # Equal runs below each other, whose rows are the parts' own: the plain operations say it in fewer words.
    plain: bool = False
