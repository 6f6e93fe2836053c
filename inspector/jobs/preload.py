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

import inspector.architectures.recognise
import inspector.cam.explain
import inspector.cam.live
import inspector.cam.trust.pictures
import inspector.exports.export
import inspector.flops.count
import inspector.jobs.worker
import inspector.keys.verify
import inspector.ready
import inspector.render.overlay
import inspector.weights.measure  # noqa: F401

# What is here for good: searching it for garbage would copy it into every worker.
gc.collect()
gc.freeze()
# This process has nothing to finish; libraries would print what they think was forgotten.
atexit.register(os._exit, 0)
