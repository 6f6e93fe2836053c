"""What is checked of a drafted repair, in order: reasons to refuse, then everything else that is to be said.

`NUMBERS` comes between: what it finds is part of the diagnosis in words.
"""

from __future__ import annotations

from inspector.findings import Check
from inspector.keys.checks import (
    adapters,
    conventions,
    numbers,
    origins,
    packed,
    pieces,
    repair,
    signs,
    sizes,
    stated,
    whole_numbers,
)
from inspector.keys.checks import auxiliary_tensors as passengers
from inspector.keys.checks.entry import Context

# The first that finds anything is the refusal. Those about the numbers come first: they hold whatever the names do.
REFUSALS: tuple[Check[Context], ...] = (
    *pieces.REFUSALS,
    *packed.REFUSALS,
    *adapters.REFUSALS,
    *origins.REFUSALS,
    pieces.RANK,
    *sizes.REFUSALS,
    *numbers.REFUSALS,
    *whole_numbers.REFUSALS,
    *signs.REFUSALS,
    *stated.REFUSALS,
)
NUMBERS = (*numbers.NUMBERS, *signs.NUMBERS)
CHECKS: tuple[Check[Context], ...] = (
    *repair.CHECKS,
    *sizes.CHECKS,
    *conventions.CHECKS,
    *numbers.CHECKS,
    *adapters.CHECKS,
    *packed.CHECKS,
    *origins.CHECKS,
    *passengers.CHECKS,
    repair.OPTIMIZERS,
)
