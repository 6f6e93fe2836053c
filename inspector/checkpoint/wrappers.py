"""Segments that tools put into parameter names by themselves, and which tool that is. The one list of them."""

from __future__ import annotations

WRAPPERS = {
    "module": "DataParallel and DistributedDataParallel",
    "_orig_mod": "torch.compile",
    "_fsdp_wrapped_module": "FSDP",
    "_checkpoint_wrapped_module": "activation checkpointing",
    "_forward_module": "Lightning Fabric and DeepSpeed",
    "_fpw_module": "fairscale's FSDP",
}
# No network means anything by them, but for "module", which people choose too.
WRAPPER_SEGMENTS = frozenset(WRAPPERS)
