"""A small zoo whose kinships are known, and audits of it as a person runs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

from inspector.catalogue.parts import PartFolder, catalogue_of
from inspector.catalogue.update import Updated, update
from inspector.lint.audit import audit
from inspector.survey.survey import How
from inspector.sweep.store import open_store
from tests.lint.test_check import request_of

HOSTILE = b"cos\nsystem\n(S'echo hi'\ntR."
#: A tensor's name that would be a question, or a line, or a picture, wherever it is not taken for a name.
EVIL = "w'; drop table files; --\n\x1b[31m\x00\u202e\"${jndi}%s<img src=x>"


def weights(seed: int, count: int = 6) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {f"layers.{n}.q_proj.weight": rng.standard_normal((4, 4)).astype(np.float32) for n in range(count)}


def make_zoo(root: Path) -> Path:
    """base, a copy, the same weights as .pth, two fine-tunes of the last layer, a stranger, a hostile pickle."""
    root.mkdir(parents=True)
    base = weights(0)
    save_file(base, root / "base.safetensors")
    (root / "copy.safetensors").write_bytes((root / "base.safetensors").read_bytes())
    torch.save({name: torch.from_numpy(value) for name, value in base.items()}, root / "base.pth")
    for number in (1, 2):
        save_file(
            {**base, "layers.5.q_proj.weight": weights(number)["layers.5.q_proj.weight"]},
            root / f"tune{number}.safetensors",
        )
    save_file(weights(9) | {"norm.weight": np.ones(4, np.float32)}, root / "stranger.safetensors")
    (root / "evil.pkl").write_bytes(HOSTILE)
    return root


def run_audit(zoo: Path, store: Path, *, digest: bool = True, headers: bool = False, base: Path | None = None) -> None:
    audit(request_of(zoo, base=base or zoo.parent, digest=digest, headers=headers), How(store=open_store(str(store))))


def bring_up_to_date(store: Path, **more: int) -> tuple[Updated, PartFolder]:
    folder = catalogue_of(store)
    return update([open_store(str(store))], folder, **more), folder
