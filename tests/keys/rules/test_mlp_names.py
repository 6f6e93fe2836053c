"""torchvision's vision transformers before and since 0.13: linear_1 and 0, linear_2 and 3."""

from __future__ import annotations

from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose


def block(first, second, prefix=""):
    sizes = {first: (8, 4), second: (4, 8)}
    parts = [(f"{prefix}layer_{i}.mlp.{n}", s) for i in range(3) for n, s in sizes.items()]
    return {f"{n}.weight": s for n, s in parts} | {f"{n}.bias": s[:1] for n, s in parts}


OLD, NEW = block("linear_1", "linear_2"), block("0", "3")


def test_old_names_become_new_ones_and_back(file_of, target_of):
    for ours, theirs in ((OLD, NEW), (NEW, OLD), (block("linear_1", "linear_2", "module."), NEW)):
        plan = diagnose(file_of(ours), target_of(theirs)).plan
        assert plan.complete and "mlp-names" in {use.id for use in plan.rules}
        moved = {s.target: s.source for s in plan.steps}
        for ending in ("weight", "bias"):
            first = "linear_1" if theirs is OLD else "0"
            assert moved[f"layer_2.mlp.{first}.{ending}"].split(".")[-2] in ("linear_1", "0")


def test_the_code_is_a_line_per_layer_and_no_table(file_of, target_of):
    code = python_code(diagnose(file_of(OLD), target_of(NEW)).plan, file_name="a.pth")
    assert r"re.sub('\\.mlp\\.linear_1\\.', '.mlp.0.', key)" in code and "renamed = {" not in code


def test_other_sizes_are_no_old_names(file_of, target_of):
    wider = {n: tuple(2 * x if x == 8 else x for x in s) for n, s in OLD.items()}
    report = diagnose(file_of(wider), target_of(NEW))
    assert report.plan is None or not report.plan.complete


def test_matrices_the_other_way_round_are_old_names_by_their_biases(file_of, target_of):
    turned = {n: s[::-1] for n, s in OLD.items()}
    plan = diagnose(file_of(turned), target_of(NEW)).plan
    assert plan.complete and {use.id for use in plan.rules} >= {"transposed"}
    assert {s.target: s.source for s in plan.steps}["layer_1.mlp.3.weight"] == "layer_1.mlp.linear_2.weight"


def test_equal_names_are_left_alone(file_of, target_of):
    assert diagnose(file_of(OLD), target_of(OLD)).plan.rules == ()
