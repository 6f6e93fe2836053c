"""Record state dicts of timm's vision transformers and Swins at odd sizes, for the tests of the families.

    python -m scripts.record_timm [--output FOLDER]

Needs timm. In the format of `scripts.record_families`; "config" holds the constructor's arguments.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path
from typing import Any

import timm
import torch
from timm.models.deit import VisionTransformerDistilled
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import VisionTransformer

from scripts.record_families import FOLDER, rows_of, section

Config = dict[str, Any]
SMALL: Config = {"img_size": 48, "patch_size": 8, "embed_dim": 96, "depth": 3, "num_heads": 3, "mlp_ratio": 2.5}
MODELS: dict[str, list[tuple[str, Any, Config]]] = {
    "timm_vit": [
        ("plain", VisionTransformer, {**SMALL, "num_classes": 7}),
        ("one channel, no head", VisionTransformer, {**SMALL, "num_classes": 0, "in_chans": 1}),
        ("layer scale, registers", VisionTransformer, {**SMALL, "init_values": 1e-5, "reg_tokens": 4}),
        ("no bias, norms of heads", VisionTransformer, {**SMALL, "qkv_bias": False, "qk_norm": True}),
        ("averaged", VisionTransformer, {**SMALL, "class_token": False, "global_pool": "avg", "fc_norm": True}),
        ("norm in front", VisionTransformer, {**SMALL, "pre_norm": True, "num_classes": 5}),
        ("distilled", VisionTransformerDistilled, {**SMALL, "num_classes": 6}),
    ],
    "timm_swin": [
        (
            "small",
            SwinTransformer,
            {"img_size": 64, "patch_size": 4, "embed_dim": 24, "depths": (1, 2, 3), "num_heads": (2, 3, 6)}
            | {"window_size": 4, "num_classes": 9, "mlp_ratio": 3.0},
        )
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder for the files")
    folder: Path = parser.parse_args().output / f"timm-{timm.__version__}"
    folder.mkdir(parents=True, exist_ok=True)
    for file, models in MODELS.items():
        sections = []
        for label, kind, config in models:
            with torch.device("cpu"):
                rows = rows_of(kind(**config))
            header = {"class": kind.__name__, "config": config, "from": folder.name, "tied": []}
            sections.append(section(label, header, rows))
        (folder / f"{file}.txt.gz").write_bytes(gzip.compress("".join(sections).encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
