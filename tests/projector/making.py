"""Points and files for the tests of the projector."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from inspector.checkpoint.types import Checkpoint
from inspector.projector.report import Points
from inspector.readers import open_checkpoint


def points(values: NDArray[Any], **more: Any) -> Points:
    """Of these vectors, numbered from 0."""
    return Points(
        **{
            "name": "table.weight",
            "noun": "row",
            "values": values,
            "numbers": np.arange(len(values), dtype=np.int64),
            "total": len(values),
            "marked": np.zeros(len(values), bool),
            **more,
        }
    )


def saved(tensors: Mapping[str, torch.Tensor]) -> Checkpoint:
    """Written by torch and opened again."""
    buffer = io.BytesIO()
    torch.save(dict(tensors), buffer)
    return open_checkpoint(buffer.getvalue())
