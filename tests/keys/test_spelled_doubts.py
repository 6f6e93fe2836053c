"""Words of another part are asked about however the names are spelled, and the same parts in that spelling are not."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose
from inspector.keys.placing.joined_levels import in_one_form


def layers(*names, shape=(8, 8)):
    return {f"{name}.{leaf}": s for name in names for leaf, s in (("weight", shape), ("bias", shape[:1]))}


def vit(at):
    sizes = {"attn.qkv": (24, 8), "attn.proj": (8, 8), "mlp.fc1": (16, 8), "mlp.fc2": (8, 16)}
    return {f"{at}.{name}.weight": size for name, size in sizes.items()}


END = {"final.weight": (7, 8), "final.bias": (7,)}
TWO = [f"blocks.{i}.fc{j}" for i in range(4) for j in (1, 2)]
GATED = [f"layers.{i}.{n}.fc{j}" for i in (0, 1) for n in ("gate_proj", "up_proj", "down_proj") for j in (1, 2)]
SIDES = [f"layers.{i}.{n}.fc{j}" for i in (0, 1) for n in ("query", "key", "value") for j in (1, 2)]
PADS = {f"units.{i}.pad_token": (8,) for i in (0, 1)} | layers("fc")
STACK = [f"layers.{i}.fc1" for i in range(3)]


def exchanged(names, *pairs):
    made = {}
    for name, shape in names.items():
        for one, other in pairs:
            name = name.replace(one, other)
        made[name] = shape
    return made


# (the target, what the file says instead: of another part; of the same, in the same spelling)
CASES = {
    "one of a row under a network's word": (
        layers(*TWO) | END,
        [("blocks.2", "stem")],
        [("blocks.", "stages.")],
    ),
    "joined, one of a row": (
        layers(*TWO) | END,
        [("blocks.2.", "trunk."), ("blocks.", "blocks_")],
        [("blocks.", "blocks_")],
    ),
    "around layers of equal names": (layers(*GATED), [("gate_proj", "skip_proj")], [("gate_proj", "gate")]),
    "output for value": (layers(*SIDES), [("value", "output")], [("value", "v_proj")]),
    "joined numbers": (PADS, [("units.", "units_"), ("pad_token", "unk_token")], [("units.", "units_")]),
    "letters": (layers("h.fc1", "h.fc2"), [("h.", "w.")], [("h.", "module.h.")]),
    "a letter and a number": (layers("fc") | {"unit.h0": (8,)}, [("h0", "c0")], [("unit.", "module.unit.")]),
    "under module.": (vit("y") | END, [("y.", "module.x."), ("final.", "module.final.")], [("y.", "model.y.")]),
    "dashes": (
        layers("fc") | {"unit.rel_pos_h": (8,)},
        [("unit.rel_pos_h", "net.unit.rel-pos-w"), ("fc.", "net.fc.")],
        [("unit.rel_pos_h", "net.unit.rel-pos-h"), ("fc.", "net.fc.")],
    ),
    "beside an honest one": (
        vit("left") | vit("video") | END,
        [("left.", "model.net.left."), ("video.", "model.net.projector."), ("final.", "model.net.final.")],
        [("left.", "model.net.left."), ("video.", "model.net.video."), ("final.", "model.net.final.")],
    ),
    "image and caption": (vit("image") | END, [("image.", "caption.")], [("image.", "visual.")]),
    "counted from the end, joined": (
        layers(*STACK),
        [("layers.", "upside_down_")],
        [("layers.", "blocks_")],
    ),
    "an output for an embedding": (
        {"src_embed.weight": (30, 8)} | layers("layers.0", "layers.1"),
        [("layers.", "layers_"), ("src_embed", "output")],
        [("layers.", "layers_")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_another_part_is_asked_about_and_the_same_one_is_not(case, file_of, target_of):
    goal, trap, honest = CASES[case]
    plan = diagnose(file_of(exchanged(goal, *trap)), target_of(goal)).plan
    assert plan is None or not plan.complete
    plan = diagnose(file_of(exchanged(goal, *honest)), target_of(goal)).plan
    assert plan is not None and plan.complete and not plan.ambiguities


def test_a_letter_behind_a_number_is_no_number(file_of, target_of):
    goal = layers(*TWO) | END
    names = {"blocks.0": "blocks_0", "blocks.1": "blocks_1", "blocks.2": "blocks.1b", "blocks.3": "blocks_2"}
    plan = diagnose(file_of(exchanged(goal, *names.items())), target_of(goal)).plan
    assert plan is None or not plan.complete


def test_three_counted_layers_are_no_gate_up_and_down(file_of, target_of):
    goal = {f"layers.0.mlp.{name}.weight": (8, 8) for name in ("gate_proj", "up_proj", "down_proj")} | {
        "norm.weight": (8,)
    }
    ours = {f"layers.0.mlp.linear{n}.weight": (8, 8) for n in (1, 2, 3)} | {"norm.weight": (8,)}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan is None or not plan.complete


def test_numbers_are_parted_where_the_other_side_has_them_apart():
    assert in_one_form(("units_0", "C"), ("units", "0", "B")) == (("units", "0", "C"), ("units", "0", "B"))
    assert in_one_form(("units", "0", "fc1"), ("units0", "fc1")) == (("units", "0", "fc1"), ("units", "0", "fc1"))
    assert in_one_form(("fc1",), ("layers", "fc1")) == (("fc1",), ("layers", "fc1"))
    assert in_one_form(("a-b",), ("a_b",)) == (("a_b",), ("a_b",))


def test_a_layer_with_the_higher_number_is_not_the_lower_one(file_of, target_of):
    """One of two norms was wrapped: what is left of the names would put norm2 before norm1."""
    goal = {f"layer.{i}.norms.{n}.weight": (8,) for i in (0, 1) for n in (0, 1)}
    goal |= {f"layer.{i}.{name}.weight": s for i in (0, 1) for name, s in (("att.qkv", (24, 8)), ("mlp.fc1", (16, 8)))}
    ours = {
        name.replace("layer.", "blocks.").replace("norms.0", "norm1").replace("norms.1", "norm2"): shape
        for name, shape in goal.items()
    }
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan.complete and not plan.ambiguities
    wrapped = {name.replace("blocks.0.norm2.", "blocks.0.norm2.blocks."): shape for name, shape in ours.items()}
    report = diagnose(file_of(wrapped), target_of(goal))
    places = {step.source: step.target for step in report.plan.steps} if report.plan else {}
    assert not (report.plan and report.plan.complete) or (
        places["blocks.0.norm2.blocks.weight"] == "layer.0.norms.1.weight"
    )
