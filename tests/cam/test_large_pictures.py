"""A large picture is read at a coarser scale; where things lie on it does not depend on that, nor on its turn."""

from __future__ import annotations

import io
import re
import struct
import sys
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image, ImageOps

from inspector.cam.exporting.blend import Blend
from inspector.cam.inputs import large, orientation, picture, png_rows
from inspector.cam.inputs.picture import full_size, open_picture, seen_crop, upright
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.inputs.reduced import ReducedPicture, crop_in_pixels
from inspector.cam.report import Crop, Preprocessing
from inspector.cam.trust.masks import mask_seen
from inspector.errors import ExplainError
from inspector.render.outline import outline_of
from inspector.render.overlay import lay_over
from inspector.render.screen import at_screen_size
from tests.warm_python import WarmPython

ROOT = Path(__file__).resolve().parents[2]
ROWS, COLUMNS = np.mgrid[0:53, 0:61]
SMOOTH = ((COLUMNS * 3 + ROWS * 2) % 256).astype(np.uint8)
NOISE = np.random.default_rng(0).integers(0, 65536, (53, 61, 4)).astype(np.uint16)
COLOUR = (NOISE >> 8).astype(np.uint8)


def steps(resize: int | tuple[int, int] | None, crop: tuple[int, int] | None, channels: int = 3) -> Preprocessing:
    return Preprocessing(
        resize=resize,
        crop=crop,
        mean=(0.0,) * channels,
        std=(1.0,) * channels,
        channels=channels,
        interpolation="bilinear",
        source="test",
        assumed=False,
    )


def saved(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=kind, **options)
    return buffer.getvalue()


def by_opencv(pixels: np.ndarray) -> bytes:
    return bytes(cv2.imencode(".png", pixels)[1])


def turned(number: int) -> dict[str, object]:
    exif = Image.Exif()
    exif[0x0112] = number
    return {"exif": exif}


KINDS = {
    "grey": saved(Image.fromarray(SMOOTH)),
    "grey of 16 bits": saved(Image.fromarray(NOISE[..., 0])),
    "black and white": saved(Image.fromarray(SMOOTH > 100)),
    "colour": saved(Image.fromarray(COLOUR[..., :3])),
    "colour of 16 bits": by_opencv(NOISE[..., :3]),
    "colour and alpha": saved(Image.fromarray(COLOUR)),
    "colour and alpha of 16 bits": by_opencv(NOISE),
    "grey and alpha": saved(Image.fromarray(COLOUR[..., :2], "LA")),
    "palette of 2 bits": saved(Image.fromarray(COLOUR[..., :3]).quantize(3), bits=2),
    "palette of 4 bits": saved(Image.fromarray(COLOUR[..., :3]).quantize(13), transparency=3),
    "palette of 8 bits": saved(Image.fromarray(COLOUR[..., :3]).quantize(200), transparency=bytes(range(0, 200, 9))),
    "one colour clear": saved(Image.fromarray(COLOUR[..., :3]), transparency=tuple(map(int, COLOUR[3, 3, :3]))),
    "one grey clear": saved(Image.fromarray(SMOOTH), transparency=9),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large is small: everything above 1,000 pixels, and read as at most 1,000."""
    monkeypatch.setattr(picture, "MOST_WHOLE_PIXELS", 1000)
    monkeypatch.setattr(large, "_MOST_READ_PIXELS", 1000)
    monkeypatch.setattr(orientation, "_STRIP_PIXELS", 61 * 7)


def as_it_was(image: Image.Image) -> np.ndarray:
    """The upright picture as one step made it of the whole, before pictures were worked on in strips."""
    whole = ImageOps.exif_transpose(image)
    if whole.mode.startswith("I") or whole.mode == "F":
        values = np.nan_to_num(np.asarray(whole, dtype=np.float64))
        top = float(values.max(initial=0.0))
        full = 65535.0 if whole.mode.startswith("I;16") else 1.0 if whole.mode == "F" and top <= 1.0 else 0.0
        full = full or (255.0 if top <= 255.0 else 65535.0)
        grey = np.clip(np.round(values * (255.0 / full)), 0, 255).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)
    if whole.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in whole.info:
        clear = whole.convert("RGBA")
        ground = Image.new("RGBA", clear.size, (255, 255, 255, 255))
        return np.asarray(Image.alpha_composite(ground, clear).convert("RGB"))
    return np.asarray(whole.convert("RGB"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(1, 9))
def test_a_picture_of_usual_size_is_what_it_was(kind: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orientation, "_STRIP_PIXELS", 61 * 7)
    image = Image.open(io.BytesIO(KINDS[kind]))
    again = saved(image, **turned(number), **({"transparency": image.info["transparency"]} if image.info else {}))
    shown = upright(open_picture(again))
    assert not isinstance(shown, ReducedPicture)
    assert np.array_equal(np.asarray(shown), as_it_was(Image.open(io.BytesIO(again))))


@pytest.mark.parametrize("mode", ["I", "F"])
@pytest.mark.parametrize("top", [0.7, 200.0, 40_000.0])
def test_the_range_of_a_grey_is_that_of_the_whole_and_not_of_a_strip(
    mode: str, top: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orientation, "_STRIP_PIXELS", 61)
    values = (COLUMNS / 60 * ROWS / 52 * top).astype(np.int32 if mode == "I" else np.float32)
    image = Image.fromarray(values)
    assert image.mode == mode and np.array_equal(np.asarray(upright(image)), as_it_was(image))


@pytest.mark.parametrize("kind", KINDS)
def test_strips_of_a_png_are_what_pillow_makes_of_the_whole(kind: str) -> None:
    file = io.BytesIO(KINDS[kind])
    header = png_rows.read_header(file)
    assert header is not None
    full = 65535.0 if kind == "grey of 16 bits" else 0.0
    strips = [np.asarray(orientation.flattened(one, full)) for one in png_rows.read_strips(file, header, 7)]
    assert [len(strip) for strip in strips] == [7] * 7 + [4]
    assert np.array_equal(np.concatenate(strips), as_it_was(Image.open(io.BytesIO(KINDS[kind]))))


def mean_of_blocks(pixels: np.ndarray, factor: int) -> np.ndarray:
    """Each block's mean, of fewer pixels at the right and lower edge; halves are rounded up."""
    high, wide = -(-pixels.shape[0] // factor), -(-pixels.shape[1] // factor)
    out = np.empty((high, wide, 3))
    for y in range(high):
        for x in range(wide):
            block = pixels[y * factor : (y + 1) * factor, x * factor : (x + 1) * factor]
            out[y, x] = block.reshape(-1, 3).mean(axis=0)
    return np.floor(out + 0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_png_is_the_mean_of_its_pixels(kind: str, small: None) -> None:
    shown = open_picture(KINDS[kind])
    assert isinstance(shown, ReducedPicture) and upright(shown) is shown
    assert (shown.size, shown.full_size, shown.box) == ((31, 27), (61, 53), (0, 0, 30.5, 26.5))
    expected = mean_of_blocks(as_it_was(Image.open(io.BytesIO(KINDS[kind]))), 2)
    assert np.abs(np.asarray(shown) - expected).max() <= (1 if kind == "palette of 4 bits" else 0.51)


@pytest.mark.parametrize("kind", ["TIFF", "BMP", "WEBP"])
def test_other_formats_are_averaged_after_they_were_read(kind: str, small: None) -> None:
    data = saved(Image.fromarray(COLOUR[..., :3]), kind, **({"lossless": True} if kind == "WEBP" else {}))
    shown = open_picture(data)
    assert isinstance(shown, ReducedPicture)
    assert np.abs(np.asarray(shown) - mean_of_blocks(COLOUR[..., :3], 2)).max() <= 0.51


def test_a_large_grey_of_16_bits_in_a_tiff_is_not_clipped_to_white(small: None) -> None:
    shown = open_picture(saved(Image.fromarray((COLUMNS * 1000).astype(np.uint16)), "TIFF"))
    # Columns 30 and 31 hold 30,000 and 31,000: 117 and 121 of 255.
    assert np.asarray(shown)[5, 15].tolist() == [119] * 3


def test_a_large_jpeg_is_scaled_by_its_decoder_and_lies_where_it_lay(small: None) -> None:
    ramp = np.repeat(np.clip(COLUMNS * 4, 0, 255).astype(np.uint8)[..., None], 3, axis=2)
    shown = open_picture(saved(Image.fromarray(ramp), "JPEG", quality=95))
    assert isinstance(shown, ReducedPicture)
    assert (shown.size, shown.full_size, shown.box) == ((31, 27), (61, 53), (0, 0, 30.5, 26.5))
    # Column 10 stands for columns 20 and 21: 80 and 84.
    assert np.abs(np.asarray(shown)[:, 10, 0].astype(int) - 82).max() <= 2


@pytest.mark.parametrize("number", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "JPEG"])
def test_however_it_is_turned_each_pixel_stands_for_the_ones_under_it(number: int, kind: str, small: None) -> None:
    blurred = cv2.GaussianBlur(COLOUR[..., :3], (0, 0), 4)
    data = saved(Image.fromarray(blurred), kind, **turned(number), **({"quality": 98} if kind == "JPEG" else {}))
    shown = open_picture(data)
    whole = as_it_was(Image.open(io.BytesIO(data))).astype(float)
    high, wide = whole.shape[:2]
    assert isinstance(shown, ReducedPicture) and shown.full_size == full_size(shown) == (wide, high)
    left, top, right, bottom = shown.box
    # Which read pixel the centre of each of the file's pixels lies in.
    across = np.floor(left + (np.arange(wide) + 0.5) * (right - left) / wide).astype(int)
    down = np.floor(top + (np.arange(high) + 0.5) * (bottom - top) / high).astype(int)
    assert (across.min(), across.max(), down.min(), down.max()) == (0, shown.width - 1, 0, shown.height - 1)
    expected = np.zeros((shown.height, shown.width, 3))
    for y in range(shown.height):
        for x in range(shown.width):
            expected[y, x] = whole[np.ix_(down == y, across == x)].reshape(-1, 3).mean(axis=0)
    # At the edge the decoder of JPEG fills up a block by what it likes.
    inner = np.s_[2:-2, 2:-2] if kind == "JPEG" else np.s_[:, :]
    assert np.abs(np.asarray(shown)[inner] - expected[inner]).max() <= (4 if kind == "JPEG" else 0.51)


def test_a_crop_is_told_in_the_files_pixels_and_lies_right_on_what_was_read() -> None:
    # 403 x 200, every fourth pixel read, mirrored: the last column, now the first, stands for three.
    shown = ReducedPicture(Image.new("RGB", (101, 50)), full_size=(403, 200), box=(0.25, 0.0, 101.0, 50.0))
    crop = seen_crop(full_size(shown), steps(100, (80, 80)))
    # 403 x 200 -> 201 x 100: the middle 80 of 201 begins at 60 (60.5 rounds to even), each 403/201 wide.
    assert (crop.picture_width, crop.picture_height) == (403, 200)
    assert crop.left == pytest.approx(60 * 403 / 201) and crop.width == pytest.approx(80 * 403 / 201)
    held = crop_in_pixels(crop, shown)
    assert (held.picture_width, held.picture_height) == (101, 50)
    assert held.left == pytest.approx(0.25 + 60 * 403 / 201 / 4) and held.width == pytest.approx(80 * 403 / 201 / 4)
    assert (held.top, held.height) == (5.0, 40.0)
    # What is told in the pixels that were read already stays as it is.
    assert crop_in_pixels(held, shown) is held


def test_a_screen_shows_all_of_a_reduced_picture_and_no_more() -> None:
    # 30 columns read as 8 of 4, the last for two: white begins at column 24, four fifths from the left.
    pixels = Image.new("RGB", (8, 4))
    pixels.paste((255, 255, 255), (6, 0, 8, 4))
    shown = at_screen_size(ReducedPicture(pixels, full_size=(30, 16), box=(0.0, 0.0, 7.5, 4.0)), 15)
    assert shown.size == (15, 8)
    assert abs(float((np.asarray(shown)[4, :, 0] / 255).sum()) - 3.0) < 0.3


def test_the_overlay_of_a_reduced_picture_by_hand() -> None:
    # 16 x 8 pixels read as 4 x 2. The model saw columns 4 to 12, rows 0 to 8, as 2 x 1 cells: the left one is hot.
    shown = ReducedPicture(Image.new("RGB", (4, 2), (100, 100, 100)), full_size=(16, 8), box=(0.0, 0.0, 4.0, 2.0))
    crop = Crop(left=4.0, top=0.0, width=8.0, height=8.0, picture_width=16, picture_height=8)

    def red(heat: np.ndarray) -> np.ndarray:
        return np.stack([heat * 255, heat * 0, heat * 0], axis=2).astype(np.uint8)

    drawn = lay_over(shown, np.array([[1.0, 0.0]], dtype=np.float32), crop, red, opacity=1.0, blend=Blend.UNIFORM)
    assert drawn.shape == (2, 4, 3)
    for row in drawn:
        assert row.tolist() == [[100] * 3, [255, 0, 0], [0, 0, 0], [100] * 3]


@pytest.mark.parametrize("channels", [1, 3])
def test_the_models_input_is_nearly_that_of_the_whole_and_not_shifted(
    channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 1003 is no multiple of 4: a picture squeezed to whole pixels would be shifted by up to three of the file's.
    columns, rows = np.meshgrid(np.arange(1003), np.arange(777))
    waves = 127 + 60 * np.sin(columns / 40) + 60 * np.cos(rows / 30)
    data = saved(Image.fromarray(np.repeat(waves.astype(np.uint8)[..., None], 3, axis=2)), **turned(6))
    whole, crop = prepare(open_picture(data), steps(96, (64, 64), channels))
    monkeypatch.setattr(picture, "MOST_WHOLE_PIXELS", 1000)
    monkeypatch.setattr(large, "_MOST_READ_PIXELS", 50_000)
    reduced = open_picture(data)
    assert isinstance(reduced, ReducedPicture) and reduced.size == (195, 251)
    read, read_crop = prepare(reduced, steps(96, (64, 64), channels))
    assert read_crop == crop and (crop.picture_width, crop.picture_height) == (777, 1003)
    assert float((read - whole).abs().max()) <= 2.01 / 255


def test_a_model_that_asks_for_more_than_was_read_is_refused(small: None) -> None:
    shown = open_picture(KINDS["colour"])
    with pytest.raises(ExplainError, match="too large for this model: of its 61 x 53 pixels 31 x 27 are read"):
        prepare(shown, steps(None, (20, 20)))
    assert prepare(shown, steps(27, None))[0].shape == (1, 3, 27, 31)


def test_a_mask_may_be_read_at_another_scale_than_the_picture(small: None) -> None:
    drawn = np.zeros((53, 61), dtype=np.uint8)
    drawn[20:30, 30:40] = 255
    mask = upright(open_picture(saved(Image.fromarray(drawn))))
    assert isinstance(mask, ReducedPicture)
    crop = Crop(left=20.0, top=10.0, width=40.0, height=40.0, picture_width=61, picture_height=53)
    found = mask_seen(mask, crop, (4, 4)).numpy()
    # The input's cells are 10 pixels each: the mask is the one in row 1, column 1.
    assert found.tolist() == [[False] * 4, [False, True, False, False], [False] * 4, [False] * 4]
    with pytest.raises(ExplainError, match="The mask has 61 x 53 pixels, the picture 60 x 53"):
        mask_seen(mask, Crop(left=0, top=0, width=9, height=9, picture_width=60, picture_height=53), (4, 4))


def test_the_box_of_a_very_large_picture_lies_in_its_own_pixels() -> None:
    # 12,000 x 9,000, all of it seen as 4 x 3 cells of 3,000: the one in column 1, row 1 is hot. Between the centres of
    # cells heat is linear: from 0.5 on it reaches half a cell to either side.
    heat = np.zeros((3, 4), dtype=np.float32)
    heat[1, 1] = 1.0
    crop = Crop(left=0.0, top=0.0, width=12_000.0, height=9_000.0, picture_width=12_000, picture_height=9_000)
    found = outline_of(heat, crop, 0.5)
    assert found.box is not None
    assert np.abs(np.array(found.box) - [3000, 3000, 6000, 6000]).max() <= 8


@pytest.mark.parametrize("where", ["in the rows", "in a filter", "at the end"])
def test_a_damaged_large_picture_is_a_sentence(where: str, small: None) -> None:
    data = bytearray(KINDS["colour"])
    if where == "at the end":
        del data[-500:]
    elif where == "in the rows":
        data[200:260] = bytes(60)
    else:
        rows = zlib.decompress(b"".join(re.findall(rb"IDAT(.*?).{4}(?=\0\0..I|\0\0\0\0IEND)", bytes(data), re.DOTALL)))
        wrong = bytearray(rows)
        wrong[10 * (1 + 61 * 3)] = 9
        data = bytearray(png(struct.pack(">IIBBBBB", 61, 53, 8, 2, 0, 0, 0), bytes(wrong)))
    with pytest.raises(ExplainError, match=r"The picture cannot be read: (image file is truncated|broken data stream)"):
        open_picture(bytes(data))


def test_a_jpeg_that_ends_before_its_pixels_is_a_sentence(small: None) -> None:
    data = saved(Image.fromarray(COLOUR[..., :3]), "JPEG")
    with pytest.raises(ExplainError, match="cannot be read: image file is truncated"):
        open_picture(data[: data.index(b"\xff\xda")] + b"\xff\xd9")


def png(header: bytes, rows: bytes) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_what_cannot_be_scaled_while_it_is_decoded_is_refused_where_it_takes_too_much(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "_MOST_DECODED_NBYTES", 12_000)
    colour = Image.fromarray(COLOUR[..., :3])
    for data, says in (
        (saved(colour, "JPEG", progressive=True, subsampling=0), "a progressive JPEG of that size takes 19.4 kB"),
        (saved(colour, "TIFF"), "a TIFF file of that size takes 12.9 kB"),
        (saved(colour, "WEBP"), "a WEBP file of that size takes 25.9 kB"),
    ):
        with pytest.raises(ExplainError, match=f"61 x 53 pixels; {says} to decode, more than the 12.0 kB"):
            open_picture(data)
    # One with half the colours' resolution, one of a single scan, and a grey fit.
    for data in (
        saved(colour, "JPEG", progressive=True, subsampling=2),
        saved(colour, "JPEG", subsampling=0),
        saved(Image.fromarray(SMOOTH), "TIFF"),
    ):
        assert isinstance(open_picture(data), ReducedPicture)


def test_a_picture_like_a_thread_is_refused() -> None:
    with pytest.raises(ExplainError, match="the longer side may have 100,000"):
        open_picture(saved(Image.new("1", (3_000_000, 10))))


_MAKE = """
import struct, sys, zlib
from PIL import Image
import numpy as np
kind, path = sys.argv[1:]
size = (12_000, 9_000)
if kind.startswith("PNG"):
    depth, colour, nbytes = {"PNG grey 16": (16, 0, 2), "PNG colour 16": (16, 2, 6), "PNG colour 8": (8, 2, 3)}[kind]
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    row = bytes([2]) + bytes([(x * 7) % 5 for x in range(size[0] * nbytes)])
    # Nine thousand times the same: squeezed once.
    squeeze = zlib.compressobj(1, zlib.DEFLATED, -15)
    squeezed, check = squeeze.compress(row) + squeeze.flush(zlib.Z_FULL_FLUSH), 1
    with open(path, "wb") as file:
        file.write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", *size, depth, colour, 0, 0, 0)))
        file.write(chunk(b"IDAT", b"\\x78\\x01"))
        for _ in range(size[1]):
            check = zlib.adler32(row, check)
            file.write(chunk(b"IDAT", squeezed))
        file.write(chunk(b"IDAT", squeeze.flush() + check.to_bytes(4)) + chunk(b"IEND", b""))
else:
    tile = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8))
    picture = tile.resize(size, Image.Resampling.BILINEAR)
    if kind == "TIFF grey 16":
        picture = Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257)
        picture.save(path, format="TIFF")
    else:
        exif = Image.Exif()
        exif[0x0112] = 6
        picture.save(path, format="JPEG", exif=exif)
"""
_LOOK = """
import sys
from pathlib import Path
from inspector.cam.inputs.picture import open_picture, upright, full_size, seen_crop
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.report import Preprocessing
from inspector.render.outline import outline_of
from inspector.render.overlay import lay_over
from inspector.render.colour_maps import coloured
import numpy as np
steps = Preprocessing(resize=256, crop=(224, 224), mean=(0.0,) * 3, std=(1.0,) * 3, channels=3,
                      interpolation="bilinear", source="test", assumed=False)
heat = np.linspace(0, 1, 224 * 224, dtype=np.float32).reshape(224, 224)
import cv2
import torch  # which takes 400 MB by itself
cv2.setNumThreads(1)
def most():
    # Not getrusage: its ru_maxrss begins with that of the process this one was started by.
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
before = most()
picture = open_picture(Path(sys.argv[1]))
opened = most()
batch, crop = prepare(picture, steps)
shown = upright(picture)
shown.resize((1400, 1050), reducing_gap=2.0)
drawn = lay_over(picture, heat, crop, lambda field: coloured(field, "viridis"))
outline_of(heat, crop, 0.5)
print(*full_size(picture), *picture.size, *batch.shape, drawn.shape[1], opened - before, most() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory stands in /proc")
@pytest.mark.parametrize("kind", ["JPEG", "PNG colour 8", "PNG colour 16", "PNG grey 16", "TIFF grey 16"])
def test_108_megapixels_are_read_and_overlaid_within_300_mb(
    kind: str, tmp_path: Path, _warm_python: WarmPython
) -> None:
    path = tmp_path / "picture"
    _warm_python.run(_MAKE, kind, str(path), cwd=ROOT)
    out = _warm_python.run(_LOOK, str(path), cwd=ROOT).split()
    size = ["9000", "12000"] if kind == "JPEG" else ["12000", "9000"]
    read = ["2250", "3000"] if kind == "JPEG" else ["3000", "2250"]
    assert out[:9] == [*size, *read, "1", "3", "224", "224", read[0]]
    assert float(out[-1]) < 300, f"{kind}: {out[-2]} MB to open, {out[-1]} MB in all"
