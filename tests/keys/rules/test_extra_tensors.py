"""Tensors without a place are left out only when the user says so."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose

NET = {"conv.weight": (8, 3, 3, 3), "fc.weight": (2, 8)}


def test_extra_tensors_wait_for_acceptance(file_of, target_of):
    ours = file_of(NET | {"criterion.pos_weight": (2,)})
    waiting = diagnose(ours, target_of(NET))
    assert waiting.plan.needs_accept == ("extra-tensors",) and not waiting.plan.complete
    assert "extra-tensors" in waiting.says
    plan = diagnose(ours, target_of(NET), accept=["extra-tensors"]).plan
    assert plan.complete and [s.source for s in plan.steps if s.target is None] == ["criterion.pos_weight"]


def test_acceptance_changes_nothing_where_all_have_a_place(file_of, target_of):
    assert diagnose(file_of(NET), target_of(NET), accept=["extra-tensors"]).plan.rules == ()


BLOCKS = {
    f"blocks.{i}.{part}.{leaf}": shape
    for i in range(3)
    for part, leaf, shape in (
        ("conv", "weight", (8, 8, 3, 3)),
        ("conv", "bias", (8,)),
        ("norm", "weight", (8,)),
        ("norm", "bias", (8,)),
    )
} | {"head.weight": (4, 8)}
ATTENTION = {f"blocks.{i}.attn.fc.weight": (8, 8) for i in range(3)}


def test_weights_inside_placed_blocks_are_asked_about_first(file_of, target_of):
    """The same network without attention has every name of the target, and computes something else."""
    ours = file_of(BLOCKS | ATTENTION)
    open_ = diagnose(ours, target_of(BLOCKS), accept=["extra-tensors"])
    assert [a.id for a in open_.plan.ambiguities] == ["inner-parts"] and not open_.plan.complete
    assert "3 weights" in open_.says and "blocks.0.attn.fc.weight" in open_.says
    other = diagnose(ours, target_of(BLOCKS), accept=["extra-tensors"], choose={"inner-parts": "computes"})
    assert other.plan is None or not other.plan.complete
    beside = diagnose(ours, target_of(BLOCKS), accept=["extra-tensors"], choose={"inner-parts": "beside"}).plan
    assert beside.complete and {s.source for s in beside.steps if s.target is None} == set(ATTENTION)


def test_what_is_put_into_blocks_and_comes_off_again_is_no_question(file_of, target_of):
    for added in (
        {f"blocks.{i}.conv.lora_A.default.weight": (2, 8) for i in range(3)},
        {f"blocks.{i}.conv.weight_mask": (8, 8, 3, 3) for i in range(3)},
        {f"blocks.{i}.scale": (8,) for i in range(3)},
        {f"criterion.layers.{i}.fc.weight": (8, 8) for i in range(3)},
        {"blocks.0.attn.fc.weight": (8, 8)},
    ):
        report = diagnose(file_of(BLOCKS | added), target_of(BLOCKS), accept=["extra-tensors"])
        assert report.plan is None or report.plan.ambiguities == (), added
