"""Pictures of every kind become what a viewer shows; the crop is the one torchvision makes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torchvision.transforms import functional

from inspector.cam.inputs.picture import crop_box, open_picture, seen_crop, upright
from inspector.cam.report import Preprocessing
from inspector.errors import ExplainError


def steps(resize: int | tuple[int, int] | None, crop: tuple[int, int] | None) -> Preprocessing:
    return Preprocessing(
        resize=resize,
        crop=crop,
        mean=(0.0,) * 3,
        std=(1.0,) * 3,
        channels=3,
        interpolation="bilinear",
        source="test",
        assumed=False,
    )


def pixel(picture: Image.Image) -> tuple[int, ...]:
    return tuple(np.asarray(upright(picture))[0, 0].tolist())


def test_exif_orientation_is_obeyed(tmp_path: Path) -> None:
    pixels = np.zeros((2, 3, 3), dtype=np.uint8)
    pixels[0, 0] = 200  # upper left
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise by a quarter
    path = tmp_path / "turned.png"
    Image.fromarray(pixels).save(path, exif=exif)
    shown = np.asarray(upright(open_picture(path)))
    assert shown.shape == (3, 2, 3)
    assert shown[0, 1, 0] == 200  # upper left has become upper right
    assert shown.sum() == 600


def test_transparency_lies_over_white() -> None:
    assert pixel(Image.new("RGBA", (1, 1), (0, 0, 0, 0))) == (255, 255, 255)
    assert pixel(Image.new("RGBA", (1, 1), (0, 0, 0, 51))) == (204, 204, 204)
    assert pixel(Image.new("RGBA", (1, 1), (10, 20, 30, 255))) == (10, 20, 30)
    assert pixel(Image.new("LA", (1, 1), (7, 255))) == (7, 7, 7)
    palette = Image.new("P", (1, 1), 0)
    palette.putpalette([9, 8, 7])
    assert pixel(palette) == (9, 8, 7)
    palette.info["transparency"] = 0
    assert pixel(palette) == (255, 255, 255)


def test_grey_of_any_depth() -> None:
    assert pixel(Image.new("L", (1, 1), 77)) == (77, 77, 77)
    assert pixel(Image.new("1", (1, 1), 1)) == (255, 255, 255)
    assert pixel(Image.new("CMYK", (1, 1), (0, 0, 0, 255))) == (0, 0, 0)
    sixteen = Image.fromarray(np.array([[32896, 65535]], dtype=np.uint16))
    assert np.asarray(upright(sixteen))[0, :, 0].tolist() == [128, 255]
    assert pixel(Image.fromarray(np.array([[257, 65535]], dtype=np.int32))) == (1, 1, 1)
    assert pixel(Image.fromarray(np.array([[200, 255]], dtype=np.int32))) == (200, 200, 200)
    assert pixel(Image.fromarray(np.array([[0.5, 1.0]], dtype=np.float32))) == (128, 128, 128)
    assert pixel(Image.fromarray(np.array([[np.nan, 1.0]], dtype=np.float32))) == (0, 0, 0)


def test_sixteen_bit_png_from_a_file() -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.array([[0, 32896]], dtype=np.uint16)).save(buffer, format="PNG")
    assert np.asarray(upright(open_picture(buffer.getvalue())))[0, :, 0].tolist() == [0, 128]


def test_what_is_no_picture() -> None:
    with pytest.raises(ExplainError, match="not a picture"):
        open_picture(b"not a picture at all")
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(buffer, format="PNG")
    with pytest.raises(ExplainError, match="cannot be read"):
        open_picture(buffer.getvalue()[:2000])


@pytest.mark.parametrize(
    ("size", "kind", "words"),
    [
        ((16_000, 16_000), "PNG", "16000 x 16000 pixels"),
        ((16_000, 16_000), "JPEG", "16000 x 16000 pixels"),
        ((20_000, 10_000), "BMP", "more than 178,956,970 pixels"),
    ],
)
def test_a_bomb_is_refused_before_it_is_unpacked(size: tuple[int, int], kind: str, words: str) -> None:
    buffer = io.BytesIO()
    Image.new("L" if kind == "JPEG" else "1", size).save(buffer, format=kind)
    with pytest.raises(ExplainError, match=f"{words}; at most 250 million"):
        open_picture(buffer.getvalue())


def test_crop_in_original_pixels_by_hand() -> None:
    # 400 x 200 -> 200 x 100 (shorter side 100) -> the middle 80 x 80, from column 60 and row 10.
    crop = seen_crop((400, 200), steps(100, (80, 80)))
    assert (crop.left, crop.top, crop.width, crop.height) == (120.0, 20.0, 160.0, 160.0)
    assert (crop.picture_width, crop.picture_height) == (400, 200)


def test_crop_without_resize_without_crop_and_squeezed() -> None:
    whole = seen_crop((400, 200), steps(None, None))
    assert (whole.left, whole.top, whole.width, whole.height) == (0.0, 0.0, 400.0, 200.0)
    # Squeezed to a square: the model sees the whole picture, each axis at its own scale.
    squeezed = seen_crop((400, 200), steps((50, 50), (40, 40)))
    assert (squeezed.left, squeezed.top, squeezed.width, squeezed.height) == (40.0, 20.0, 320.0, 160.0)


def test_same_crop_as_torchvision_for_every_remainder() -> None:
    # Every pixel carries its own column and row, so that one off would show.
    columns, rows = np.meshgrid(np.arange(1, 16), np.arange(1, 15))
    picture = Image.fromarray(np.stack([columns, rows, rows], axis=2).astype(np.uint8))
    for side in range(6, 24):
        expected = functional.center_crop(picture, [side, side])
        assert np.array_equal(np.asarray(picture.crop(crop_box(15, 14, (side, side)))), np.asarray(expected)), side


def test_crop_beyond_a_small_picture() -> None:
    crop = seen_crop((10, 40), steps(None, (20, 20)))
    assert (crop.left, crop.top, crop.width, crop.height) == (-5.0, 10.0, 20.0, 20.0)
    assert crop_box(11, 40, (20, 20)) == (-4, 10, 16, 30)
