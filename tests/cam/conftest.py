"""Small models and a picture that the tests of heat maps share."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def picture() -> Image.Image:
    """120 wide, 90 high, seeded noise."""
    return Image.fromarray(np.random.default_rng(5).integers(0, 256, (90, 120, 3), dtype=np.uint8))
