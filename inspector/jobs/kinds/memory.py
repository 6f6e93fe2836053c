"""How much memory one forward keeps for its gradients, known from shapes before any number is computed."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from inspector.cam.engine.capture import unwrap
from inspector.errors import InspectorError
from inspector.flops.blank import to_meta

# What is kept when no shape can be traced: by a ResNet-50 about 600 bytes for each number of its input.
_NBYTES_A_NUMBER = 1000


def forward_nbytes(model: nn.Module, shape: tuple[int, ...]) -> int:
    """Bytes that one forward at (N, C, H, W) with its backward takes beside the model, about.

    What autograd keeps is counted exactly, by running a copy without values; the largest of these comes on top for what
    is in work. Where the model cannot run so, by the size of its input.
    """
    numel = 1
    for side in shape:
        numel *= side
    kept: dict[int, tuple[object, int]] = {}
    try:
        blank = to_meta(unwrap(model), label="the model")
    except (InspectorError, RuntimeError, TypeError):
        return _NBYTES_A_NUMBER * numel
    own = {_storage(tensor)[0] for tensor in (*blank.parameters(), *blank.buffers())}

    def keep(tensor: Tensor) -> Tensor:
        number, nbytes = _storage(tensor)
        if number not in own:
            # Held, so that no other storage gets its number.
            kept[number] = (tensor, nbytes)
        return tensor

    picture = torch.empty(shape, device="meta", requires_grad=True)
    try:
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            blank(picture)
    except Exception:  # noqa: BLE001 - of whatever kind: a model that runs with numbers only
        return _NBYTES_A_NUMBER * numel
    sizes = [nbytes for _, nbytes in kept.values()]
    return sum(sizes) + 4 * max(sizes, default=0)


def weights_nbytes(model: nn.Module) -> int:
    """Bytes of its parameters and buffers, what is shared counted once."""
    seen = dict(_storage(tensor) for tensor in (*model.parameters(), *model.buffers()))
    return sum(seen.values())


def _storage(tensor: Tensor) -> tuple[int, int]:
    storage = tensor.untyped_storage()
    return storage._cdata, storage.nbytes()
