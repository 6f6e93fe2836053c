"""Getting on with others on the same processors. Imported before torch, of which nothing is imported here."""

from __future__ import annotations

import os
import sys

# Turns of a loop, some tens of microseconds.
_TURNS = "1000"


def share_processors() -> None:
    """Let threads that wait for each other sleep soon; called by programs before they import torch, not by libraries.

    torch's threads meet after every operation, and by default spin until all are there. Where another program has one
    of the processors, each such meeting lasts until that one is interrupted: a measurement of 3 seconds took over 200
    beside one busy program, 7 with this, and quiet machines lose nothing. What the environment says already stands.
    """
    if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", _TURNS)
