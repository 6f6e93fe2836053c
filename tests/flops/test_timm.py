"""Every network of timm: counted without an error, its rows add up, and torch's own counter gives the same total."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from inspector.architectures.build import build_model
from inspector.architectures.index import load_index
from inspector.architectures.types import ArchitectureSpec
from inspector.errors import InspectorError
from inspector.flops.count import count_costs, inputs_of
from inspector.forward.inputs import blank_of, by_place

pytest.importorskip("timm")


def test_every_network_is_counted(thorough: bool) -> None:
    names = sorted({entry.name for entry in load_index().entries if entry.library == "timm"})
    # Without time, a few of each beginning.
    chosen = names if thorough else names[:: len(names) // 12]
    refused, apart = [], []
    for name in chosen:
        spec = ArchitectureSpec(library="timm", name=name)
        try:
            report = count_costs(spec, second_opinion=False)
        except InspectorError as error:
            refused.append((name, error.says))
            continue
        assert sum(m.own_macs for m in report.modules) == report.macs, name
        assert sum(m.own_parameters for m in report.modules) == report.parameters, name
        inputs = inputs_of(spec)
        args, kwargs = by_place([blank_of(given) for given in inputs], inputs)
        # Built before: some run their stem in __init__. Without gradients, which torch's counter stumbles over.
        model = build_model(spec, device="meta").eval().requires_grad_(False)
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model(*args, **kwargs)
        if counter.get_total_flops() // 2 != report.macs:
            apart.append((name, counter.get_total_flops() // 2, report.macs))
    assert not refused
    assert not apart
