"""What methods that look at neighbours are given: long vectors by their strongest directions alone.

Van der Maaten and Hinton 2008 (JMLR 9, section 4.2) take 30 principal components, which takes away noise and time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspector.progress import Progress
from inspector.projector.methods.method import Vectors
from inspector.projector.pca import principal_components
from inspector.units import human_share

_KEPT = 50


def shortened(values: Vectors, progress: Progress) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """(n, at most 50), and what was left out, in sentences."""
    if values.shape[1] <= _KEPT:
        return values.astype(np.float64), ()
    found = principal_components(values, _KEPT, progress=progress)
    # All of it is all of it, however the shares were rounded.
    held = human_share(round(float(found.shares.sum()), 9))
    says = f"Of {values.shape[1]:,} numbers a vector, the first {len(found.shares)} principal components were taken"
    return found.coordinates, (f"{says}: {held} of the variance.",)
