"""Square matrices inside one tensor, each stored (in, out), in a file that shows another layout than torch's.

The oracle: torch's own cut (chunk, unbind) and transpose of each part, and the answers of a network.
"""

from __future__ import annotations

import re

import pytest
import torch

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

D = 4
WHOLES = {
    "blocks.0.attn.qkv.weight": (3 * D, D),
    "attn.in_proj_weight": (3 * D, D),
    "attn.to_kv.weight": (2 * D, D),
    "mlp.gate_up_proj.weight": (2 * D, D),
    "rnn.weight_hh_l0": (4 * D, D),
    "rnn.weight_ih_l1_reverse": (3 * D, D),
    "experts.w1": (3, D, D),
    "experts.weight": (3, D, D),
    "layers.attn.qkv.weight": (2, 3 * D, D),
}


def around():
    """What shows that matrices of the file lie (in, out)."""
    torch.manual_seed(0)
    return {"head.weight": torch.randn(5, D), "head.bias": torch.randn(5)}


def turned(state):
    return {n: t.t().contiguous() if t.dim() == 2 else t for n, t in state.items()}


def each_turned(whole):
    """Each square below the other turned, as whoever splits, transposes and fuses again leaves them."""
    if whole.dim() == 3:
        return torch.stack([each_turned(one) for one in whole])
    return torch.cat([part.t() for part in whole.split(whole.shape[1])])


class Loaded:
    def load_state_dict(self, state, strict):
        self.held = state


def opened(state, tmp_path):
    torch.save(state, tmp_path / "a.pth")
    return open_checkpoint(tmp_path / "a.pth")


def goal_of(state, target_of):
    return target_of({n: tuple(t.shape) for n, t in state.items()})


def is_right(checkpoint, plan, state, target, tmp_path, monkeypatch):
    """The plan, its proof and its printed code: each gives these numbers."""
    made = apply_plan(checkpoint, plan)
    assert plan.complete and all(torch.equal(made[n], t) for n, t in state.items())
    assert verify_plan(checkpoint, plan, target).holds
    model = Loaded()
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": model})
    assert all(torch.equal(model.held[n], t) for n, t in state.items())


@pytest.mark.parametrize("leaf", ["weight", "kernel", "w"])
@pytest.mark.parametrize(("name", "shape"), WHOLES.items())
def test_squares_in_one_are_asked_about_beside_turned_matrices(name, shape, leaf, tmp_path, monkeypatch, target_of):
    state = around() | {name: torch.randn(shape)}
    file = turned(around()) | {name: each_turned(state[name])}
    file = {re.sub(r"\.weight$", f".{leaf}", n): t for n, t in file.items()}
    checkpoint, target = opened(file, tmp_path), goal_of(state, target_of)
    waiting = diagnose(checkpoint, target).plan
    # A stack called experts.kernel may be a kernel of one dimension, whose axes are asked about; the numbers are those.
    asked = waiting.ambiguities[0].id
    assert not waiting.complete and asked in ("transposed-parts", "channels-last")
    if asked == "transposed-parts":
        is_right(checkpoint, _chosen(checkpoint, target, "transposed"), state, target, tmp_path, monkeypatch)
        as_it_is = _chosen(checkpoint, target, "as-it-is")
        assert as_it_is.complete and torch.equal(apply_plan(checkpoint, as_it_is)[name], each_turned(state[name]))
        left_out = diagnose(checkpoint, target, choose={"transposed-parts": "otherwise"}).plan
        assert left_out is None or (not left_out.complete and name not in {s.target for s in left_out.steps})


def _chosen(checkpoint, target, answer):
    plan = diagnose(checkpoint, target, choose={"transposed-parts": answer}).plan
    # Another code's name for gate and value has its own question.
    more = {q.id: "as-it-is" for q in plan.ambiguities}
    assert more.keys() <= {"gate-order"}
    return diagnose(checkpoint, target, choose={"transposed-parts": answer} | more).plan if more else plan


@pytest.mark.parametrize(("name", "shape"), WHOLES.items())
def test_in_a_file_of_torchs_own_nothing_is_asked(name, shape, tmp_path, target_of):
    state = around() | {name: torch.randn(shape)}
    plan = diagnose(opened(state, tmp_path), goal_of(state, target_of)).plan
    assert plan.complete and not plan.ambiguities


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("mlp.fc1.weight", (4 * D, D)),  # a layer twice or four times as wide is no whole by its name
        ("mlp.fc1.weight", (2 * D, D)),
        ("attn.qkv.weight", (3 * D, 7)),
        ("attn.qkv.weight", (2 * D, D)),  # fewer heads of key and value: no three squares
    ],
)
def test_what_holds_no_squares_is_not_asked_about(name, shape, tmp_path, target_of):
    state = around() | {name: torch.randn(shape)}
    file = turned(around()) | {name: state[name]}
    plan = diagnose(opened(file, tmp_path), goal_of(state, target_of)).plan
    assert plan.complete and not plan.ambiguities


def test_a_whole_that_lies_the_other_way_round_shows_it_by_its_shape(tmp_path, target_of):
    state = around() | {"attn.qkv.weight": torch.randn(3 * D, D), "attn.qkv.bias": torch.randn(3 * D)}
    checkpoint = opened(turned(state), tmp_path)
    plan = diagnose(checkpoint, goal_of(state, target_of)).plan
    assert plan.complete and not plan.ambiguities
    assert torch.equal(apply_plan(checkpoint, plan)["attn.qkv.weight"], state["attn.qkv.weight"])


def test_columns_of_a_conv1d_of_the_target_hold_squares_side_by_side(tmp_path, monkeypatch, target_of):
    """GPT-2's c_attn is (in, 3 x in) in transformers: torch's query, key and value stand beside each other."""
    torch.manual_seed(1)
    state = {"h.0.mlp.c_fc.weight": torch.randn(D, 9), "h.0.mlp.c_fc.bias": torch.randn(9)}
    whole = torch.randn(D, 3 * D)
    file = turned(state) | {"h.0.attn.c_attn.weight": torch.cat([part.t() for part in whole.chunk(3, 1)], 1)}
    state["h.0.attn.c_attn.weight"] = whole
    checkpoint, target = opened(file, tmp_path), goal_of(state, target_of)
    assert [q.id for q in diagnose(checkpoint, target).plan.ambiguities] == ["transposed-parts"]
    is_right(checkpoint, _chosen(checkpoint, target, "transposed"), state, target, tmp_path, monkeypatch)


@pytest.mark.parametrize("leaf", ["kernel", "w"])
def test_a_whole_of_squares_does_not_vouch_for_other_squares(leaf, tmp_path, target_of):
    """qkv.kernel as high as torch's says that kernels lie as torch has them, unless its parts were turned before."""
    state = {"attn.qkv.weight": torch.randn(3 * D, D), "attn.proj.weight": torch.randn(D, D)}
    file = {n.replace("weight", leaf): t for n, t in state.items()}
    plan = diagnose(opened(file, tmp_path), goal_of(state, target_of)).plan
    assert {q.id for q in plan.ambiguities} == {"transposed", "transposed-parts"} and not plan.complete


@pytest.mark.parametrize("order", ["q-k-v", "k-v-q", "2-heads"])
def test_parts_of_a_whole_of_the_file_are_turned_as_they_are_taken_out(order, tmp_path, monkeypatch, target_of):
    parts = {n: torch.randn(D, D) for n in "qkv"}
    state = around() | {f"attn.{n}_proj.weight": t for n, t in parts.items()}
    rows = {n: t.t().reshape(2, -1, D) for n, t in parts.items()}
    if order == "2-heads":
        whole = torch.cat([rows[n][head] for head in (0, 1) for n in "qkv"])
    else:
        whole = torch.cat([parts[n].t() for n in order.split("-")])
    file = turned(around()) | {"attn.in_proj.weight": whole}
    checkpoint, target = opened(file, tmp_path), goal_of(state, target_of)
    asked = {q.id for q in diagnose(checkpoint, target).plan.ambiguities}
    assert asked == {"qkv-order", "transposed"}
    plan = diagnose(checkpoint, target, choose={"qkv-order": order, "transposed": "transposed"}).plan
    is_right(checkpoint, plan, state, target, tmp_path, monkeypatch)


@pytest.mark.parametrize("answer", ["transposed", "as-it-is"])
def test_a_stack_that_was_asked_about_is_not_asked_about_layer_by_layer(answer, tmp_path, target_of):
    stack = torch.randn(3, D, D)
    state = around() | {f"experts.{i}.w1.weight": stack[i].clone() for i in range(3)}
    file = turned(around()) | {"experts.w1.weight": stack if answer == "as-it-is" else each_turned(stack)}
    checkpoint, target = opened(file, tmp_path), goal_of(state, target_of)
    assert [q.id for q in diagnose(checkpoint, target).plan.ambiguities] == ["stacked-layers"]
    plan = diagnose(checkpoint, target, choose={"stacked-layers": answer}).plan
    assert plan.complete and all(torch.equal(apply_plan(checkpoint, plan)[n], t) for n, t in state.items())


def test_kerass_recurrent_layer_lies_in_a_known_way(tmp_path, target_of):
    """Of as many inputs as units, its kernels are squares side by side; Keras's own names say how they lie."""
    own = {"rnn.weight_ih_l0": torch.randn(4 * D, D), "rnn.weight_hh_l0": torch.randn(4 * D, D)}
    state = own | {"rnn.bias_ih_l0": torch.randn(4 * D), "rnn.bias_hh_l0": torch.zeros(4 * D)}
    file = {"rnn.kernel": own["rnn.weight_ih_l0"].t(), "rnn.recurrent_kernel": own["rnn.weight_hh_l0"].t()}
    file = {n: t.contiguous() for n, t in file.items()} | {"rnn.bias": state["rnn.bias_ih_l0"]}
    checkpoint = opened(file, tmp_path)
    plan = diagnose(checkpoint, goal_of(state, target_of)).plan
    assert plan.complete and not plan.ambiguities
    assert all(torch.equal(apply_plan(checkpoint, plan)[n], t) for n, t in state.items())


@pytest.mark.parametrize("bias", [True, False])
def test_a_gated_layer_the_other_way_round_gets_the_targets_order_as_well(bias, tmp_path, monkeypatch, target_of):
    """diffusers' net.0.proj has the value first, Phi-3's gate_up_proj the gate."""
    own = {"weight": torch.randn(2 * D, D)} | ({"bias": torch.randn(2 * D)} if bias else {})
    state = around() | {f"mlp.gate_up_proj.{leaf}": t for leaf, t in own.items()}
    file = turned(around() | {f"ff.net.0.proj.{leaf}": torch.cat(t.chunk(2)[::-1]) for leaf, t in own.items()})
    checkpoint, target = opened(file, tmp_path), goal_of(state, target_of)
    plan = diagnose(checkpoint, target).plan
    is_right(checkpoint, plan, state, target, tmp_path, monkeypatch)


def test_the_order_of_a_fused_matrix_is_asked_about_also_where_it_lies_the_other_way_round(tmp_path, target_of):
    """BLOOM's query_key_value is head by head; turned, it became timm's qkv unasked."""
    state = around() | {"attn.qkv.weight": torch.randn(3 * D, D), "attn.proj.weight": torch.randn(D, 7)}
    file = turned({n.replace(".qkv.", ".query_key_value."): t for n, t in state.items()})
    checkpoint, target = opened(file, tmp_path), goal_of(state, target_of)
    asked = diagnose(checkpoint, target).plan
    assert not asked.complete and "fused-order" in {q.id for q in asked.ambiguities}
    plan = diagnose(checkpoint, target, choose={"fused-order": "otherwise"}).plan
    assert not plan.complete and "attn.qkv.weight" in plan.missing
    plan = diagnose(checkpoint, target, choose={"fused-order": "as-it-is"}).plan
    assert plan.complete and torch.equal(apply_plan(checkpoint, plan)["attn.qkv.weight"], state["attn.qkv.weight"])


def test_where_every_matrix_that_tells_lies_as_torch_has_it_nothing_is_asked_of_a_whole(tmp_path, target_of):
    """Names of another library on torch's layout; the squares of such names are spoken for by the others."""
    state = around() | {"rnn.weight_hh_l0": torch.randn(4 * D, D), "proj.weight": torch.randn(D, D)}
    checkpoint = opened({n.replace("head.weight", "head.kernel"): t for n, t in state.items()}, tmp_path)
    target = goal_of(state, target_of)
    assert [q.id for q in diagnose(checkpoint, target).plan.ambiguities] == ["transposed"]
    plan = diagnose(checkpoint, target, choose={"transposed": "as-it-is"}).plan
    assert plan.complete and not plan.ambiguities
    # A square that lies the other way round by the user's word makes it doubtful after all.
    plan = diagnose(checkpoint, target, choose={"transposed": "transposed"}).plan
    assert [q.id for q in plan.ambiguities] == ["transposed-parts"]
