"""NPZ files whose bytes depend on their arrays alone: NumPy's own writer puts the time of day into them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from inspector.cam.report import Explanation

# The earliest that a zip file can name.
_WHEN = (1980, 1, 1, 0, 0, 0)


class NpzWriter:
    """Writes one array after the other, so that only one is held. A context manager."""

    def __init__(self, where: Path | IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(where, "w", zipfile.ZIP_DEFLATED, compresslevel=6)

    def __enter__(self) -> NpzWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def add(self, name: str, array: NDArray[np.float32]) -> None:
        """name: the key by which `numpy.load` finds it."""
        data = io.BytesIO()
        np.lib.format.write_array(data, np.ascontiguousarray(array), allow_pickle=False)
        entry = zipfile.ZipInfo(f"{name}.npy", date_time=_WHEN)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3
        self._zip.writestr(entry, data.getvalue())

    def add_map(self, explanation: Explanation, prefix: str = "") -> None:
        """raw (h, w), heat (H, W), the normalised one at the input size, and logits (classes,), all float32."""
        for name in ("raw", "heat", "logits"):
            self.add(prefix + name, getattr(explanation, name))


def maps_npz(explanations: Sequence[Explanation]) -> bytes:
    """One map as "raw", "heat", "logits"; several as "0000_raw" and so on, in their order."""
    buffer = io.BytesIO()
    with NpzWriter(buffer) as writer:
        for number, one in enumerate(explanations):
            writer.add_map(one, "" if len(explanations) == 1 else f"{number:04d}_")
    return buffer.getvalue()
