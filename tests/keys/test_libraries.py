"""torchvision's files for timm's models by order, where no table knows the names: both sides come from the index.

That the answers are then equal bit for bit was measured once with timm installed; see docs/measurements.md.
"""

from __future__ import annotations

import pytest

from inspector.architectures.targets import parse_target
from inspector.keys.diagnose import diagnose
from inspector.keys.report import Evidence

ACCEPT = ("same-order",)


def names(text):
    return {t.name: t.shape for t in parse_target(text).tensors}


def test_torchvision_as_timm_by_order(file_of):
    ours, theirs, known = "mnasnet0_5", "mnasnet_050", {"classifier.1.bias": "classifier.bias"}
    own, goal = names(f"torchvision/{ours}"), parse_target(f"timm/{theirs}")
    waiting = diagnose(file_of(own), goal)
    assert waiting.plan is not None and not waiting.plan.complete and waiting.plan.needs_accept == ACCEPT
    plan = diagnose(file_of(own), goal, accept=ACCEPT).plan
    assert plan.complete and plan.ambiguities == ()
    moved = {s.source: s.target for s in plan.steps if s.target is not None}
    assert known.items() <= moved.items()
    # A counter, a weight, a norm: each stays what it is.
    assert all(a.rpartition(".")[2] == b.rpartition(".")[2] for a, b in moved.items())
    assert {kind for kind, _ in plan.certificate} == {Evidence.UNIQUE_TOKEN, Evidence.ORDER_ONLY}


def test_equal_names_need_no_order(file_of):
    plan = diagnose(file_of(names("torchvision/resnet50")), parse_target("timm/resnet50")).plan
    assert plan.complete and plan.rules == ()


@pytest.mark.parametrize(
    "theirs", ["efficientnet_b1", "mobilenetv2_110d", "vit_small_patch16_224", "swin_small_patch4_window7_224"]
)
def test_another_size_or_another_sequence_is_not_forced(theirs, file_of):
    ours = {"vit": "vit_b_16", "swi": "swin_t"}.get(theirs[:3], "efficientnet_b0")
    plan = diagnose(file_of(names(f"torchvision/{ours}")), parse_target(f"timm/{theirs}"), accept=ACCEPT).plan
    assert plan is None or not plan.complete


def test_sorted_files_of_another_library_are_refused(file_of):
    own = names("torchvision/mnasnet0_5")
    for changes in ({"ordered": False}, {}):
        report = diagnose(
            file_of(dict(sorted(own.items())), **changes), parse_target("timm/mnasnet_050"), accept=ACCEPT
        )
        assert report.plan is None or not report.plan.complete
