"""Gate and value joined and taken apart in the order that is proved or told, and never where only shapes agree."""

from __future__ import annotations

import pytest
import torch

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint
from tests.raw import prove_bytes

FIRST = {"gate-up-order": "gate-first"}
FORMS = [("gate_proj", "up_proj", "gate_up_proj"), ("w1", "w2", "w12")]


def nets(form):
    torch.manual_seed(0)
    one, two, both = form
    apart, fused = {}, {}
    for i in range(2):
        start = f"layers.{i}.mlp."
        a, b, down = torch.randn(6, 4), torch.randn(6, 4), torch.randn(4, 6)
        # The value first: names decide, not the order of the file.
        apart |= {f"{start}{two}.weight": b, f"{start}{one}.weight": a, f"{start}down.weight": down}
        fused |= {f"{start}{both}.weight": torch.cat([a, b]), f"{start}down.weight": down}
    return apart, fused


def shapes(state):
    return {n: tuple(t.shape) for n, t in state.items()}


class Loaded:
    def load_state_dict(self, state, strict):
        self.held = state


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize("joined", [True, False])
def test_there_and_back(form, prefix, joined, tmp_path, target_of, monkeypatch):
    ours, goal = nets(form) if joined else nets(form)[::-1]
    torch.save({prefix + n: t for n, t in ours.items()}, tmp_path / "a.pth")
    checkpoint, target = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(goal))
    waiting = diagnose(checkpoint, target).plan
    if form[2] != "w12" or not joined:  # a model that has w12 is DINOv2's or xFormers': its order is known
        assert not waiting.complete and [q.id for q in waiting.ambiguities] == ["gate-up-order"]
        assert waiting.ambiguities[0].options[0][0] == "gate-first"
    choose = FIRST if waiting.ambiguities else {}
    plan = diagnose(checkpoint, target, choose=choose).plan
    assert plan.complete and verify_plan(checkpoint, plan, target).holds
    made = apply_plan(checkpoint, plan)
    assert set(made) == set(goal) and all(torch.equal(made[n], t) for n, t in goal.items())
    model = Loaded()
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": model})
    assert set(model.held) == set(goal) and all(torch.equal(model.held[n], t) for n, t in goal.items())


def test_halves_that_changed_places_are_caught_by_the_bytes(saved, target_of):
    apart, fused = nets(FORMS[0])
    checkpoint, target = saved(apart), target_of(shapes(fused))
    plan = diagnose(checkpoint, target, choose=FIRST).plan
    held = apply_plan(checkpoint, plan)
    assert prove_bytes(checkpoint, plan, held).passed
    name = "layers.1.mlp.gate_up_proj.weight"
    held[name] = held[name].roll(6, 0)
    assert prove_bytes(checkpoint, plan, held).passed is False


@pytest.mark.parametrize("order", ["gate-first", "up-first", "row-by-row"])
@pytest.mark.parametrize("name", ["gate_up_proj", "up_gate_proj", "wi", "fc1", "linear_fc1", "ff_proj", "w13"])
@pytest.mark.parametrize("joined", [True, False])
def test_every_order_under_every_name_is_an_answer(order, name, joined, saved, target_of):
    torch.manual_seed(1)
    gate, up, down = torch.randn(6, 4), torch.randn(6, 4), torch.randn(4, 6)
    both = {
        "gate-first": torch.cat([gate, up]),
        "up-first": torch.cat([up, gate]),
        "row-by-row": torch.stack([gate, up], 1).flatten(0, 1),  # gpt-oss: gate_up[..., ::2], gate_up[..., 1::2]
    }[order]
    apart = {"m.gate_proj.weight": gate, "m.up_proj.weight": up, "m.down.weight": down}
    fused = {f"m.{name}.weight": both, "m.down.weight": down}
    ours, goal = (apart, fused) if joined else (fused, apart)
    checkpoint, target = saved(ours), target_of(shapes(goal))
    (question,) = diagnose(checkpoint, target).plan.ambiguities
    first = "up-first" if name.startswith("up") else "gate-first"
    assert question.id == "gate-up-order" and question.options[0][0] == first
    made = apply_plan(checkpoint, diagnose(checkpoint, target, choose={"gate-up-order": order}).plan)
    assert all(torch.equal(made[n], t) for n, t in goal.items())


def test_dinov2s_layers_are_joined_unasked(saved, target_of):
    apart, fused = nets(FORMS[1])
    apart = {n.replace("down", "w3"): t for n, t in apart.items()}
    fused = {n.replace("down", "w3"): t for n, t in fused.items()}
    checkpoint = saved(apart)
    plan = diagnose(checkpoint, target_of(shapes(fused))).plan
    made = apply_plan(checkpoint, plan)
    assert plan.complete and all(torch.equal(made[n], t) for n, t in fused.items())


@pytest.mark.parametrize(
    ("ours", "goal"),
    [
        ({"fc1.weight": (6, 4), "fc2.weight": (6, 4)}, {"gate_up_proj.weight": (12, 4)}),  # no gate by its name
        ({"gate_proj.weight": (6, 4), "up_proj.weight": (6, 4)}, {"other.weight": (12, 4)}),
        ({"gate_proj.weight": (6, 4), "up_proj.weight": (5, 4)}, {"gate_up_proj.weight": (12, 4)}),
        ({"w1.weight": (6, 4), "w2.weight": (6, 4)}, {"gate_up_proj.weight": (12, 4)}),  # Meta's w2 is the way down
        ({"gate_proj.weight": (6, 4)}, {"gate_up_proj.weight": (12, 4)}),
    ],
)
def test_where_only_shapes_agree_nothing_is_joined(ours, goal, file_of, target_of):
    both = ({f"m.{n}": s for n, s in net.items()} | {"m.down.weight": (4, 6)} for net in (ours, goal))
    own, there = both
    for a, b in ((own, there), (there, own)):
        plan = diagnose(file_of(a), target_of(b), accept=("extra-tensors",)).plan
        assert plan is None or (not plan.complete and not plan.ambiguities)


def test_both_sides_alike_are_untouched(file_of, target_of):
    for net in nets(FORMS[0]):
        assert diagnose(file_of(shapes(net)), target_of(shapes(net))).plan.rules == ()


def test_dinov2s_w12_of_a_file_is_taken_apart_unasked_beside_its_w3(file_of, target_of):
    beside = {"blocks.0.mlp.w3.weight": (4, 6), "blocks.0.norm.weight": (4,)}
    one = {"blocks.0.mlp.w12.weight": (12, 4)} | beside
    two = {"blocks.0.mlp.w1.weight": (6, 4), "blocks.0.mlp.w2.weight": (6, 4)} | beside
    plan = diagnose(file_of(one), target_of(two)).plan
    assert plan.complete
    assert [(s.target, s.rows) for s in plan.steps if s.rows[1]] == [
        ("blocks.0.mlp.w1.weight", (0, 6)),
        ("blocks.0.mlp.w2.weight", (6, 12)),
    ]
    # Under a name of no library, the same is asked.
    other = {n.replace("w3", "out"): s for n, s in one.items()}, {n.replace("w3", "out"): s for n, s in two.items()}
    assert [q.id for q in diagnose(file_of(other[0]), target_of(other[1])).plan.ambiguities] == ["gate-up-order"]


def test_gate_up_proj_in_layers_of_no_library_is_asked_about(file_of, target_of):
    """Its name claims the gate first; rows the other way round load as well."""
    beside = {"layers.0.mlp.down_proj.weight": (4, 6)}
    one = {"layers.0.mlp.gate_up_proj.weight": (12, 4)} | beside
    two = {"layers.0.mlp.gate_proj.weight": (6, 4), "layers.0.mlp.up_proj.weight": (6, 4)} | beside
    for ours, theirs in ((one, two), (two, one)):
        plan = diagnose(file_of(ours), target_of(theirs)).plan
        assert [q.id for q in plan.ambiguities] == ["gate-up-order"] and not plan.complete
