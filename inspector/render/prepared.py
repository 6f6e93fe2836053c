"""How pictures become a model's input, in a few words: beside a map, where there is no room for six numbers."""

from __future__ import annotations

from inspector.cam.report import Preprocessing

# As they are published, by what everybody calls them.
_KNOWN: dict[tuple[float, ...], str] = {
    (0.485, 0.456, 0.406): "ImageNet's mean",
    (0.4815, 0.4578, 0.4082): "CLIP's mean",
}


def preprocessing_words(preprocessing: Preprocessing) -> str:
    """Size and colours: "224 of 256 px, ImageNet's mean"."""
    return f"{_size(preprocessing)}, {_colours(preprocessing)}"


def _size(preprocessing: Preprocessing) -> str:
    resize, crop = preprocessing.resize, preprocessing.crop
    seen = crop or (resize if isinstance(resize, tuple) else None)
    if seen is None:
        return "its own size" if resize is None else f"shorter side {resize} px"
    says = str(seen[0]) if seen[0] == seen[1] else f"{seen[0]} x {seen[1]}"
    return f"{says} of {resize} px" if crop and isinstance(resize, int) and resize > min(crop) else f"{says} px"


def _colours(preprocessing: Preprocessing) -> str:
    mean, std = preprocessing.mean, preprocessing.std
    if not any(mean) and all(one == 1 for one in std):
        return "values from 0 to 1"
    known = _KNOWN.get(tuple(round(one, 4) for one in mean))
    if known:
        return known
    return "mean " + (f"{mean[0]:.3g}" if len(set(mean)) == 1 else ", ".join(f"{one:.3g}" for one in mean))
