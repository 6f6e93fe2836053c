"""Parameter or buffer, when only a tensor's name and type can tell.

A state dict lists both alike. These names are those under which torch, torchvision and the widely used libraries
register buffers; whatever is not known to be a buffer counts as a parameter.
"""

from __future__ import annotations

from collections.abc import Collection

from inspector.checkpoint.bookkeeping import COUNTERS
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.types import TensorInfo
from inspector.params.report import TensorRole

# Last segments that are buffers wherever they occur, with who registers them.
_BUFFERS = frozenset(
    {
        # torch.nn: batch and instance norms, losses; torch.ao observers
        "running_mean",
        "running_var",
        "pos_weight",
        "zero_point",
        "min_val",
        "max_val",
        "fake_quant_enabled",
        "observer_enabled",
        # torchvision and the Swin family
        "relative_position_index",
        "relative_coords_table",
        "attn_mask",
        # language models: positions, causal masks, rotary frequencies
        "position_ids",
        "token_type_ids",
        "masked_bias",
        "inv_freq",
        "rotary_emb_inv_freq",
        # detectors, and pictures normalised inside the model
        "anchor_grid",
        "pixel_mean",
        "pixel_std",
        # moving averages kept as modules
        "num_updates",
        *COUNTERS,
    }
)
# A loss registers its class weights as a buffer (torch.nn.modules.loss._WeightedLoss).
_LOSSES = frozenset({"criterion", "loss", "loss_fn", "loss_func", "train_loss", "val_loss"})
# Integers under these names are quantised weights, not counters or indices.
_WEIGHT_NAMES = frozenset({"weight", "bias", "qweight", "qzeros", "scales", "weight_packed"})


def role_by_name(tensor: TensorInfo, siblings: Collection[str]) -> TensorRole:
    """The role that the name suggests. siblings: names of all tensors of the same state dict."""
    parent, _, last = tensor.name.rpartition(".")
    if _is_buffer(tensor, parent, last, siblings):
        return TensorRole.BUFFER
    return TensorRole.PARAMETER


def _is_buffer(tensor: TensorInfo, parent: str, last: str, siblings: Collection[str]) -> bool:
    if last in _BUFFERS or tensor.dtype == "bool":
        return True
    if last == "weight" and len(tensor.shape) == 1 and parent.rpartition(".")[2] in _LOSSES:
        return True
    beside = f"{parent}.{last.removesuffix('_u').removesuffix('_v').removesuffix('_mask')}_orig".removeprefix(".")
    if last.endswith(("_u", "_v", "_mask")) and beside in siblings:
        # torch's spectral norm (weight_orig, weight_u, weight_v) and pruning (weight_orig, weight_mask); in the older
        # weight norm, weight_v stands beside weight_g and is a parameter.
        return True
    if last in {"_u", "_v"} and ".parametrizations." in f".{parent}.":
        # The newer spectral norm: parametrizations.weight.0._u
        return True
    dtype = find_dtype(tensor.dtype)
    # Only floating tensors can carry a gradient.
    return dtype is not None and dtype.native and not dtype.floating and last not in _WEIGHT_NAMES
