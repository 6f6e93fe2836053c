"""Names of LoRA and its kin, as PEFT, diffusers, kohya's scripts and LyCORIS write them. The one list of them.

Sources: huggingface/peft tuners/lora/layer.py, huggingface/diffusers loaders/lora_conversion_utils.py,
kohya-ss/sd-scripts networks/lora.py, KohakuBlueleaf/LyCORIS.
"""

from __future__ import annotations

import re

# Behind the matrix comes at most the name that PEFT gives the adapter. kohya's and diffusers' "down" and "up" are
# matrices and nothing else: what has a bias, or modules inside, is a network's own block of that name.
_ADAPTER = re.compile(
    r"[._](lora_(A|B|embedding_A|embedding_B|magnitude_vector)(?=(\.[^.]+)?(\.(weight|bias))?$)"
    r"|lora_(down|up)(?=\.weight$|$)|lora\.(down|up)(?=\.weight$|$)"
    r"|(hada_w[12]_[ab]|hada_t[12]|lokr_w[12](_[ab])?|lokr_t2)(?=[._]|$))"
)
# Numbers that belong to an adapter and have no name of its own.
_BESIDE = frozenset({"alpha", "dora_scale", "diff_b"})


def is_adapter_tensor(name: str) -> bool:
    """Whether a tensor of this name is one of an adapter's matrices."""
    # Most names hold none of the words that each of them has, which is asked much faster.
    return ("lora" in name or "hada_" in name or "lokr_" in name) and _ADAPTER.search(name) is not None


def is_beside_adapter(name: str) -> bool:
    """Whether it is a number of the adapter's own, such as kohya's alpha."""
    return name.rpartition(".")[2] in _BESIDE


def adapted_layer(name: str) -> str:
    """The layer that a matrix is added to, as the file names it; "" for what is no adapter's."""
    found = _ADAPTER.search(name)
    return name[: found.start()] if found else ""


def is_rank_first(name: str) -> bool:
    """Whether the matrix is the one whose first size is the rank: (rank, in)."""
    found = _ADAPTER.search(name)
    return found is not None and found[1] in ("lora_A", "lora_embedding_A", "lora_down", "lora.down")
