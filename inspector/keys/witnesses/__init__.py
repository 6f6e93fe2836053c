"""Who the numbers can be asked through where names and shapes leave a question open, one file each: a new one is one
file and one line.
"""

from __future__ import annotations

from inspector.keys.witnesses import flattened, gate_rows, key_bias, rotary_rows, value_rows
from inspector.keys.witnesses.entry import Witness

WITNESSES: tuple[Witness, ...] = (
    value_rows.WITNESS,
    key_bias.WITNESS,
    gate_rows.WITNESS,
    rotary_rows.WITNESS,
    flattened.WITNESS,
)
