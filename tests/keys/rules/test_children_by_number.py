"""Numbers of nn.Sequential(*net.children()) for names: only where the contents of each module say which it is."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose

BLOCK = ("conv1.weight", "bn1.weight", "bn1.bias", "conv2.weight")


def stage(width):
    return {n: (width, width, 3, 3) if n.startswith("conv") else (width,) for n in BLOCK}


def net(names=("conv1", "bn1", "layer1", "layer2", "layer3"), widths=(8, 16, 32)):
    conv, bn, *stages = names
    found = {f"{conv}.weight": (8, 3, 7, 7), f"{bn}.weight": (8,), f"{bn}.bias": (8,)}
    for name, width in zip(stages, widths, strict=True):
        found |= {f"{name}.0.{n}": s for n, s in stage(width).items()}
    return found


NUMBERS = ("0", "1", "4", "5", "6")


@pytest.mark.parametrize("prefix", ["", "module.", "features."])
def test_numbers_get_their_names_and_back(prefix, file_of, target_of, placed_as):
    named, counted = net(), net(NUMBERS)
    for ours, goal in ((counted, named), (named, counted)):
        for ordered in (True, False):
            report = diagnose(file_of({prefix + n: s for n, s in ours.items()}, ordered=ordered), target_of(goal))
            assert report.plan.complete and not report.plan.needs_accept
            there = dict(zip(goal, ours, strict=True))
            assert placed_as(report) == {t: prefix + s for t, s in there.items() if t != prefix + s}


def test_a_head_that_the_file_lacks_stays_missing(file_of, target_of):
    goal = net() | {"fc.weight": (4, 32), "fc.bias": (4,)}
    plan = diagnose(file_of(net(NUMBERS)), target_of(goal)).plan
    assert not plan.complete and set(plan.missing) == {"fc.weight", "fc.bias"}
    assert diagnose(file_of(net(NUMBERS)), target_of(goal), partial=True).plan.complete


def test_what_contents_do_not_tell_is_not_placed_unasked(file_of, target_of):
    head = {"fc.weight": (4, 32), "fc.bias": (4,)}
    flat = dict(zip((f"{n}.weight" for n in range(4)), ((8, 3), (8, 8), (8, 8), (4, 8)), strict=True))
    for ours, goal in (
        (net(NUMBERS, (8, 16, 16)), net(widths=(8, 16, 16)) | head),  # two hold the same
        (net(("0", "1", "6", "5", "4")), net() | head),  # another order than that of the definition
        (flat, dict(zip((f"{n}.weight" for n in "adbc"), flat.values(), strict=True))),
    ):
        report = diagnose(file_of(ours), target_of(goal), partial=True)
        assert report.plan is None or not report.plan.complete


def test_two_parts_that_hold_what_no_other_does(file_of, target_of, placed_as):
    inner = {"encoder": {"0.weight": (4, 8), "2.weight": (2, 4)}, "decoder": {"0.weight": (4, 2), "2.weight": (8, 4)}}
    named = {f"{part}.{n}": s for part, net in inner.items() for n, s in net.items()}
    counted = {n.replace("encoder", "0").replace("decoder", "1"): s for n, s in named.items()}
    report = diagnose(file_of(counted), target_of(named))
    assert report.plan.complete and placed_as(report) == dict(zip(named, counted, strict=True))
    # The same shapes on both, or one part more, and nothing says which is which.
    same = dict.fromkeys(named, (4, 4))
    for ours, goal in ((dict.fromkeys(counted, (4, 4)), same), (counted, named | {"critic.0.weight": (3, 3)})):
        report = diagnose(file_of(ours), target_of(goal), partial=True)
        assert report.plan is None or not report.plan.complete
