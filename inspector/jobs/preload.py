"""What every worker has in memory when it is born: imported once, in the process that workers are forked from.

Nothing is computed here: torch's threads would not survive the fork.
"""

from __future__ import annotations

import atexit
import gc
import os

import numpy  # noqa: F401
import torch  # noqa: F401
import torchvision  # noqa: F401

import inspector.jobs.worker  # noqa: F401
from inspector.architectures.index import load_index
from inspector.jobs.kinds.table import KINDS

# Else each worker's first job of a kind waits for its modules, and each has an index of its own.
for kind in KINDS:
    kind.work()
load_index().warm()

# What is here for good: searching it for garbage would copy it into every worker.
gc.collect()
gc.freeze()
# This process has nothing to finish; libraries would print what they think was forgotten.
atexit.register(os._exit, 0)
