"""How a map is laid over its picture: what a drawing, a request for one and its manifest all name."""

from __future__ import annotations

from enum import StrEnum

# Of the hottest place: strong enough for its colour to be read off the scale, thin enough to see what lies beneath.
OPACITY = 0.7


class Blend(StrEnum):
    """heat: opacity follows the heat, so that cold places keep the picture's own colours. uniform: the same everywhere,
    as many tools draw it; cold places take the colour map's first colour."""

    HEAT = "heat"
    UNIFORM = "uniform"
