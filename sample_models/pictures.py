"""Example pictures for the Explain page: wide scenes, so that the centre crop shows, with the objects' masks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from sample_models.shapes import CLASSES, draw_scene

HEIGHT, WIDTH = 256, 384


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRecipe:
    """One picture: its file name, the class it shows and the seed it is drawn with."""

    name: str
    label: str
    seed: int


PICTURES = (
    PictureRecipe(name="circle_1.png", label="circle", seed=101),
    PictureRecipe(name="circle_2.png", label="circle", seed=102),
    PictureRecipe(name="square_1.png", label="square", seed=103),
    PictureRecipe(name="square_2.png", label="square", seed=104),
    PictureRecipe(name="triangle_1.png", label="triangle", seed=105),
    PictureRecipe(name="triangle_2.png", label="triangle", seed=106),
    PictureRecipe(name="star_1.png", label="star", seed=107),
    PictureRecipe(name="star_2.png", label="star", seed=108),
)


def draw_pictures(folder: Path) -> tuple[Path, ...]:
    """Write the pictures into folder and their masks (white on black, same names) into folder/masks."""
    (folder / "masks").mkdir(parents=True, exist_ok=True)
    written = []
    for recipe in PICTURES:
        rng = np.random.default_rng(recipe.seed)
        picture, mask = draw_scene(rng, CLASSES.index(recipe.label), HEIGHT, WIDTH)
        path = folder / recipe.name
        cv2.imwrite(str(path), cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
        cv2.imwrite(str(folder / "masks" / recipe.name), mask.astype(np.uint8) * 255)
        written.append(path)
    return tuple(written)
