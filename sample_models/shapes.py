"""The shapes data set: one coloured shape per picture, with distractors, on a textured ground.

For training the sample model and for measuring heat maps: the mask says exactly where the object is. Only the outline
tells the class. Colour, place and rotation are drawn from the same distributions for every class, and so is the
object's area (not its width: a star of the same area is wider than a circle). Pure numpy and OpenCV, seeded: picture
i of a seed is the same whatever n is.
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

CLASSES = ("circle", "square", "triangle", "star")

# Area of the object in squares of the scene's shorter side, as the radius of a circle of that area.
_RADIUS = (0.12, 0.21)
# A star or triangle of area pi r^2 reaches 1.56 r from its centre; every class keeps a little more from the edge.
_REACH = 1.66
_STAR_INNER = 0.45
# Between object and ground, in 8-bit RGB: enough for an eye, no more than distractors have.
_CONTRAST = 120.0
# Sub-pixel positions for OpenCV: 4 fractional bits.
_SHIFT = 4

Picture = NDArray[np.uint8]  # (H, W, 3), RGB
Coverage = NDArray[np.float32]  # (H, W), 0..1
Mask = NDArray[np.bool_]  # (H, W)


def generate(seed: int, n: int, size: int = 64) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
    """n pictures: images (n, size, size, 3) uint8 RGB, labels (n,) indices of CLASSES, masks (n, size, size) bool."""
    images = np.zeros((n, size, size, 3), dtype=np.uint8)
    labels = np.zeros(n, dtype=np.int64)
    masks = np.zeros((n, size, size), dtype=np.bool_)
    for i in range(n):
        rng = np.random.default_rng((seed, i))
        labels[i] = rng.integers(len(CLASSES))
        images[i], masks[i] = draw_scene(rng, int(labels[i]), size, size)
    return images, labels, masks


def draw_scene(rng: np.random.Generator, label: int, height: int, width: int) -> tuple[Picture, Mask]:
    """One picture (height, width, 3) and its mask (height, width).

    Lengths are relative to the shorter side, and the object lies whole inside the central square, so that a centre
    crop never cuts it.
    """
    side = min(height, width)
    radius = float(rng.uniform(*_RADIUS)) * side
    room = side / 2 - _REACH * radius
    centre = np.array([width / 2, height / 2]) + rng.uniform(-room, room, size=2)
    first, second = _ground_colours(rng)
    object_colour = _far_colour(rng, (first, second))
    canvas = _ground(rng, height, width, first, second)
    for _ in range(int(rng.integers(2, 7))):
        _draw_distractor(rng, canvas, side)
    outline = _outline(label, radius, float(rng.uniform(0, 2 * np.pi))) + centre
    coverage = _fill(outline, height, width)
    paint = object_colour + _shade(rng, height, width) * 22.0
    canvas += coverage[..., None] * (paint - canvas)
    canvas += rng.standard_normal(canvas.shape, dtype=np.float32) * np.float32(rng.uniform(1, 7))
    return np.clip(np.rint(canvas), 0, 255).astype(np.uint8), coverage >= 0.5


def _outline(label: int, radius: float, angle: float) -> NDArray[np.float64]:
    """Corners (k, 2) of the class's outline around the origin, rotated by angle, with area pi radius^2."""
    return _polygon(_OUTLINES[CLASSES[label]], radius, angle)


def _polygon(distances: tuple[float, ...], radius: float, angle: float) -> NDArray[np.float64]:
    """Corners at equal angles and these distances, scaled to area pi radius^2."""
    turns = angle + np.linspace(0, 2 * np.pi, len(distances), endpoint=False)
    corners = np.stack([np.cos(turns), np.sin(turns)], axis=1) * np.array(distances)[:, None]
    x, y = corners[:, 0], corners[:, 1]
    area = abs(float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))) / 2  # shoelace formula
    scaled: NDArray[np.float64] = corners * (radius * np.sqrt(np.pi / area))
    return scaled


_OUTLINES: dict[str, tuple[float, ...]] = {
    "circle": (1.0,) * 48,
    "square": (1.0,) * 4,
    "triangle": (1.0,) * 3,
    "star": (1.0, _STAR_INNER) * 5,
}


def _fixed(points: NDArray[np.float64]) -> NDArray[np.int32]:
    """Pixel coordinates in OpenCV's fixed point; pixel centres are at whole numbers there."""
    return np.rint((points - 0.5) * (1 << _SHIFT)).astype(np.int32)


def _fill(outline: NDArray[np.float64], height: int, width: int) -> Coverage:
    """How much of each pixel lies inside the outline."""
    canvas = np.zeros((height, width), dtype=np.uint8)
    cv2.fillPoly(canvas, [_fixed(outline)], (255,), lineType=cv2.LINE_AA, shift=_SHIFT)
    return canvas.astype(np.float32) / 255


def _shade(rng: np.random.Generator, height: int, width: int) -> NDArray[np.float32]:
    """A soft ramp (H, W, 1) in -1..1 across the picture, as light falls on a surface."""
    angle = rng.uniform(0, 2 * np.pi)
    rows = np.linspace(-1, 1, height, dtype=np.float32)[:, None]
    columns = np.linspace(-1, 1, width, dtype=np.float32)[None, :]
    return ((rows * np.sin(angle) + columns * np.cos(angle)) / np.sqrt(2)).astype(np.float32)[..., None]


def _ground_colours(rng: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Two related colours (3,) that the ground mixes."""
    first = rng.uniform(30, 225, size=3).astype(np.float32)
    second = first + rng.uniform(-35, 35, size=3).astype(np.float32)
    return first, np.clip(second, 0, 255).astype(np.float32)


def _far_colour(rng: np.random.Generator, others: tuple[NDArray[np.float32], ...]) -> NDArray[np.float32]:
    """A colour (3,) at least _CONTRAST away from all others. There always is one: a corner of the cube."""
    while True:
        colour = rng.uniform(0, 255, size=3).astype(np.float32)
        if all(float(np.linalg.norm(colour - other)) >= _CONTRAST for other in others):
            return colour


def _ground(
    rng: np.random.Generator, height: int, width: int, first: NDArray[np.float32], second: NDArray[np.float32]
) -> NDArray[np.float32]:
    """A textured ground (H, W, 3), float32, by one of three textures."""
    texture = _TEXTURES[int(rng.integers(len(_TEXTURES)))](rng, height, width)
    return first + texture[..., None] * (second - first)


def _clouds(rng: np.random.Generator, height: int, width: int) -> NDArray[np.float32]:
    """Noise at three scales, 0..1."""
    total = np.zeros((height, width), dtype=np.float32)
    for cells, weight in ((3, 0.5), (7, 0.3), (17, 0.2)):
        coarse = rng.random((cells, cells), dtype=np.float32)
        total += weight * cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(total, 0, 1)


def _waves(rng: np.random.Generator, height: int, width: int) -> NDArray[np.float32]:
    """Stripes of any direction and width, 0..1."""
    side = min(height, width)
    angle, waves, start = rng.uniform(0, 2 * np.pi), rng.uniform(3, 14), rng.uniform(0, 2 * np.pi)
    rows = np.arange(height, dtype=np.float32)[:, None] / side
    columns = np.arange(width, dtype=np.float32)[None, :] / side
    phase = (rows * np.sin(angle) + columns * np.cos(angle)) * waves * 2 * np.pi + start
    return (0.5 + 0.5 * np.sin(phase)).astype(np.float32)


def _grain(rng: np.random.Generator, height: int, width: int) -> NDArray[np.float32]:
    """Coarse grain, 0..1."""
    cells = int(rng.integers(12, 40))
    coarse = rng.random((cells, cells), dtype=np.float32)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR)


_TEXTURES: tuple[Callable[[np.random.Generator, int, int], NDArray[np.float32]], ...] = (_clouds, _waves, _grain)


def _draw_distractor(rng: np.random.Generator, canvas: NDArray[np.float32], side: int) -> None:
    """Draw a line, a cross or a small irregular blob anywhere, into canvas."""
    height, width = canvas.shape[:2]
    colour = rng.uniform(0, 255, size=3)
    centre = rng.uniform((0, 0), (width, height))
    angle = float(rng.uniform(0, 2 * np.pi))
    outlines: tuple[NDArray[np.float64], ...]
    match int(rng.integers(3)):
        case 0:
            outlines = (_bar(centre, angle, side * rng.uniform(0.08, 0.45), side * rng.uniform(0.008, 0.02)),)
        case 1:
            reach, half = side * rng.uniform(0.03, 0.06), side * rng.uniform(0.008, 0.016)
            outlines = (_bar(centre, angle, reach, half), _bar(centre, angle + np.pi / 2, reach, half))
        case _:
            bumps = tuple(float(b) for b in rng.uniform(0.45, 1.0, size=9))
            stretch = np.array([1.0, rng.uniform(0.35, 0.6)])
            outlines = (_polygon(bumps, side * rng.uniform(0.025, 0.05), angle) * stretch + centre,)
    for outline in outlines:
        _paint(canvas, outline, colour.astype(np.float32))


def _paint(canvas: NDArray[np.float32], outline: NDArray[np.float64], colour: NDArray[np.float32]) -> None:
    """Fill the outline with one colour (3,), touching only the part of canvas that it covers."""
    height, width = canvas.shape[:2]
    left, top = np.clip(np.floor(outline.min(axis=0)).astype(int) - 1, 0, (width, height))
    right, bottom = np.clip(np.ceil(outline.max(axis=0)).astype(int) + 1, 0, (width, height))
    if left < right and top < bottom:
        coverage = _fill(outline - (left, top), bottom - top, right - left)[..., None]
        part = canvas[top:bottom, left:right]
        part += coverage * (colour - part)


def _bar(centre: NDArray[np.float64], angle: float, reach: float, half: float) -> NDArray[np.float64]:
    """Corners (4, 2) of a bar of length 2 reach and thickness 2 half."""
    along = np.array([np.cos(angle), np.sin(angle)]) * reach
    across = np.array([-np.sin(angle), np.cos(angle)]) * half
    return np.stack(
        [centre + along + across, centre + along - across, centre - along - across, centre - along + across]
    )
