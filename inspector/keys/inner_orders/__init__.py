"""Orders inside one tensor that no shape shows, one file each: a new one is one file and one line."""

from __future__ import annotations

from inspector.keys.inner_orders import gates, patch_merging, shift_scale
from inspector.keys.inner_orders.entry import InnerOrder

INNER_ORDERS: tuple[InnerOrder, ...] = (patch_merging.INNER_ORDER, shift_scale.INNER_ORDER, gates.INNER_ORDER)
