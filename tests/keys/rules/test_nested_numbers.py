"""Layers in numbered groups on one side only: DINOv2's chunks, nested and unrolled Sequentials."""

from __future__ import annotations

import re

import pytest

from inspector.keys.diagnose import diagnose


def grouped(name: str, *, own: bool, size: int = 2) -> str:
    def group(found: re.Match[str]) -> str:
        n = int(found[1])
        return f"blocks.{n // size}.{n if own else n % size}."

    return re.sub(r"^blocks\.(\d+)\.", group, name)


def test_chunks_with_the_layers_own_numbers_come_off_and_on(file_of, target_of, tiny_vit, placed_as):
    plain = tiny_vit(depth=4)
    chunked = {grouped(n, own=True): s for n, s in plain.items()}
    off = diagnose(file_of(chunked, ordered=False), target_of(plain))
    assert off.plan.complete and placed_as(off) == {n: grouped(n, own=True) for n in plain}
    on = diagnose(file_of(plain, ordered=False), target_of(chunked))
    assert on.plan.complete and placed_as(on) == {grouped(n, own=True): n for n in plain}


def test_groups_that_count_from_zero_are_asked_about_where_all_layers_are_alike(
    file_of, target_of, tiny_vit, placed_as
):
    plain = tiny_vit(depth=4)
    ours = {grouped(n, own=False): s for n, s in plain.items()}
    report = diagnose(file_of(ours, ordered=False), target_of(plain))
    assert not report.plan.complete and [q.id for q in report.plan.ambiguities] == ["nested-numbers"]
    chosen = diagnose(file_of(ours, ordered=False), target_of(plain), choose={"nested-numbers": "by-group"})
    assert chosen.plan.complete and placed_as(chosen) == {n: grouped(n, own=False) for n in plain}
    across = diagnose(file_of(ours, ordered=False), target_of(plain), choose={"nested-numbers": "across"})
    assert placed_as(across)["blocks.1.norm1.weight"] == "blocks.1.0.norm1.weight"


def conv(name: str, out: int, into: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out, into, 3, 3), f"{name}.bias": (out,)}


def norm(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.{leaf}": (width,) for leaf in ("weight", "bias", "running_mean", "running_var")}


FLAT = conv("features.0", 8, 3) | norm("features.1", 8) | conv("features.3", 6, 8) | norm("features.4", 6)
NESTED = conv("features.0.0", 8, 3) | norm("features.0.1", 8) | conv("features.1.0", 6, 8) | norm("features.1.1", 6)


def test_a_nested_sequential_is_unrolled_and_back(file_of, target_of, placed_as):
    truth = dict(zip(FLAT, NESTED, strict=True))
    report = diagnose(file_of(NESTED, ordered=False), target_of(FLAT))
    assert report.plan.complete and placed_as(report) == truth
    back = diagnose(file_of(FLAT, ordered=False), target_of(NESTED))
    assert back.plan.complete and placed_as(back) == {new: old for old, new in truth.items()}


def test_one_layer_that_does_not_fit_means_no_such_rule(file_of, target_of):
    ours = {n: ((7,) if n.startswith("features.1.1.") else s) for n, s in NESTED.items()}
    report = diagnose(file_of(ours, ordered=False), target_of(FLAT))
    assert report.plan is None or not any(use.id == "nested-numbers" for use in report.plan.rules)


def test_groups_on_both_sides_stay(file_of, target_of):
    assert diagnose(file_of(NESTED), target_of(NESTED)).plan.rules == ()


@pytest.mark.parametrize("segment", ["²", "①", "٣", "9" * 5000, "00"])
def test_digits_that_are_no_numbers_are_names(file_of, target_of, segment):
    ours = {f"a.{segment}.weight": (2, 2), f"a.{segment}.bias": (2,), f"a.b.{segment}.c.weight": (3, 3)}
    theirs = {"a.0.weight": (2, 2), "a.0.bias": (2,), f"b.{segment}.c.weight": (3, 3)}
    for first, second in ((ours, theirs), (theirs, ours), (ours, ours)):
        assert diagnose(file_of(first), target_of(second)).says


def test_groups_counted_down_are_asked_about(file_of, target_of, placed_as):
    goal = {f"mlp.{i}.{n}": s for i in (0, 3) for n, s in (("weight", (6, 6)), ("bias", (6,)))}
    ours = {f"mlp.{g}.2.{n}": s for g in (7, 6) for n, s in (("weight", (6, 6)), ("bias", (6,)))}
    rest = {"out.weight": (2, 6), "out.bias": (2,)}
    goal, ours = goal | rest, ours | rest
    report = diagnose(file_of(ours), target_of(goal))
    assert [q.id for q in report.plan.ambiguities] == ["nested-numbers"] and not report.plan.complete
    listed = diagnose(file_of(ours), target_of(goal), choose={"nested-numbers": "as-listed"})
    assert listed.plan.complete and placed_as(listed)["mlp.0.weight"] == "mlp.7.2.weight"
    numbers = diagnose(file_of(ours), target_of(goal), choose={"nested-numbers": "by-group"})
    assert numbers.plan.complete and placed_as(numbers)["mlp.0.weight"] == "mlp.6.2.weight"


def test_groups_counted_down_whose_shapes_tell_are_not(file_of, target_of, placed_as):
    goal = {f"mlp.{i}.weight": (6 + i, 6) for i in (0, 3)}
    ours = {"mlp.7.2.weight": (9, 6), "mlp.6.2.weight": (6, 6)}
    report = diagnose(file_of(ours), target_of(goal))
    assert report.plan.complete and placed_as(report)["mlp.0.weight"] == "mlp.6.2.weight"
    # Nor in a file that keeps no order: what it lists first says nothing.
    goal["mlp.3.weight"] = ours["mlp.7.2.weight"] = (6, 6)
    assert diagnose(file_of(ours, ordered=False), target_of(goal)).plan.complete
