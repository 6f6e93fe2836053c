"""Twin critics are no deeper network: none follows the other, and the one that the target names is taken."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose

CRITIC = {"0.weight": (16, 6), "0.bias": (16,), "2.weight": (1, 16), "2.bias": (1,)}
BLOCK = {"0.weight": (16, 6), "0.bias": (16,), "2.weight": (6, 16), "2.bias": (6,)}


def net(shapes, *names):
    return {f"{name}.{own}": shape for name in names for own, shape in shapes.items()}


@pytest.mark.parametrize("above", ["", "critic."])
@pytest.mark.parametrize("wanted", ["q1", "q2"])
def test_the_named_critic_of_two_is_taken(wanted, above, file_of, target_of):
    file = file_of({above + name: shape for name, shape in net(CRITIC, "q1", "q2").items()})
    report = diagnose(file, target_of(net(CRITIC, wanted)), accept=["extra-tensors"])
    assert report.plan.complete and "deeper" not in report.says
    assert {s.source: s.target for s in report.plan.steps if s.target} == {
        above + name: name for name in net(CRITIC, wanted)
    }
    (found,) = [finding for finding in report.findings if finding.id == "side-by-side"]
    assert f"{above}{wanted} is the target's" in found.says


def test_blocks_that_can_follow_each_other_are_a_deeper_network(file_of, target_of):
    report = diagnose(file_of(net(BLOCK, "q1", "q2")), target_of(net(BLOCK, "q1")))
    assert "deeper network" in report.says
