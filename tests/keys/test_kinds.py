"""What a question calls a layer, by its name and shape."""

from __future__ import annotations

import pytest

from inspector.keys.placing.kinds import kind_of
from inspector.keys.placing.tree import Leaf


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("t_conv3.weight", "ConvTranspose2d 4x4, 12 -> 3"),
        ("up.deconv1.weight", "ConvTranspose2d 4x4, 12 -> 3"),
        # It may be a convolution behind an upsampling: its sizes alone.
        ("ups.0.weight", "12x3x4x4"),
        ("up1.conv.weight", "Conv2d 4x4, 3 -> 12"),
        ("decoder.4.weight", "Conv2d 4x4, 3 -> 12"),
    ],
)
def test_a_transposed_convolution_has_its_sizes_the_other_way_round(name, says):
    assert kind_of(Leaf(name, (12, 3, 4, 4))) == says
