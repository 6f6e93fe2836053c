"""Which tensors of the target are one attention: its query, key and value, and the matrix behind them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inspector.keys.rules.fused_attention import PARTS, WHOLE
from inspector.keys.witnesses.entry import Floats, Scene

# What the matrix behind the heads is called; beside the parts, or (BERT, ViT) one level above them.
_OUT = (
    *("out_proj", "o_proj", "proj", "to_out.0", "to_out", "wo", "Wo", "c_proj", "out_lin", "dense", "linear_proj"),
    *("linear_out", "out", "o", "proj_out", "attn_output", "out_linear", "fc_o", "fc_out", "w_o", "W_o", "WO", "W_O"),
    *("output", "output_proj", "proj_attn", "attn_out", "output_layer"),
)
_INNER = re.compile(r"(^|\.)(self|attention|attn)$")
_ROTARY = re.compile(r"(^|[._])(rope|rotary|rotary_emb|inv_freq|freqs|freqs_cis)([._]|$)")
_PLACES = re.compile(
    r"(^|\.)(pos_embed|pos_emb|pos_embedding|position_embeddings?|positional_embedding|embed_positions|wpe"
    r"|relative_position_bias_table)(\.weight|\.proj)?$"
)
_NORMED = re.compile(r"(^|\.)(q|k|query|key)_?(layer)?_?norm(\.|$)")


@dataclass(frozen=True, slots=True)
class Attention:
    """By the target's names. parts: of query, key and value (at least the last); of one matrix with all three (`whole`)
    that name alone. out: the matrix behind the heads, "" for not known."""

    parts: tuple[str, ...]
    out: str
    whole: bool = False

    def rows(self, scene: Scene, option: str, *, dense: bool = True) -> tuple[Floats, ...] | None:
        """Query, key and value under this option, as matrices; None where one has no numbers to look at."""
        found = [scene.tensor(option, part, dense=dense) for part in self.parts]
        if any(one is None or math.prod(one.shape[2:]) != 1 for one in found):
            return None
        matrices = [one.reshape(len(one), -1) for one in found if one is not None]
        if not self.whole:
            return tuple(matrices)
        return tuple(np.split(matrices[0], 3)) if len(matrices[0]) % 3 == 0 else None


def attentions_of(scene: Scene, leaf: str = "weight") -> Iterator[Attention]:
    """Those that the question is about."""
    for name in scene.shapes:
        if WHOLE.search(name) and name.endswith(leaf) and scene.differs(name):
            parent = name.rpartition(".")[0]
            parent = parent if re.search(r"in_proj_(weight|bias)$", name) else parent.rpartition(".")[0]
            yield Attention((name,), _out_of(scene, parent), whole=True)
            continue
        module, _, own_leaf = name.rpartition(".")
        parent, _, own = module.rpartition(".")
        if own_leaf != leaf:
            continue
        for form in PARTS:
            parts = tuple(f"{parent}.{part}.{leaf}" if parent else f"{part}.{leaf}" for part in form)
            # A cross-attention's query may stand elsewhere: of what is asked it is no part.
            there = tuple(part for part in parts if part in scene.shapes)
            if own == form[-1] and any(map(scene.differs, there)):
                yield Attention(there, _out_of(scene, parent))
                break


def _out_of(scene: Scene, parent: str) -> str:
    above = parent.rpartition(".")[0]
    here = f"{parent}." if parent else ""
    found = [f"{here}{own}.weight" for own in _OUT]
    if _INNER.search(parent):
        found.append(f"{above}.output.dense.weight" if above else "output.dense.weight")
    found = [name for name in found if name in scene.shapes]
    return found[0] if len(found) == 1 else ""


def keys_get_no_gradient(scene: Scene) -> bool:
    """Whether a key's bias moves every score of a query alike: places are added to what comes in, nothing turns or
    scales the keys. By names, and no is the answer where they do not tell."""
    names = [*scene.names, *scene.shapes]
    return any(map(_PLACES.search, names)) and not any(_ROTARY.search(n) or _NORMED.search(n) for n in names)
