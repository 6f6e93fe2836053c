"""Keras's recurrent layers and gates that are apart, by what the layers compute: the formulas, worked out in NumPy."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch import nn

from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint

G = np.random.default_rng(3)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def keras_lstm(x, w, u, b):
    """keras layers/rnn/lstm.py: i, f, c, o."""
    h = c = np.zeros(u.shape[0])
    for row in x:
        i, f, g, o = np.split(row @ w + h @ u + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    return h


def keras_gru(x, w, u, b):
    """keras layers/rnn/gru.py with reset_after: z, r, h."""
    h = np.zeros(u.shape[0])
    for row in x:
        xz, xr, xh = np.split(row @ w + b[0], 3)
        hz, hr, hh = np.split(h @ u + b[1], 3)
        z, r = sigmoid(xz + hz), sigmoid(xr + hr)
        h = z * h + (1 - z) * np.tanh(xh + r * hh)
    return h


def tensors(gates, inputs, units, rows):
    shapes = ((inputs, gates * units), (units, gates * units), (*rows, gates * units))
    return [G.standard_normal(shape) * 0.4 for shape in shapes]


def saved(tmp_path, state):
    torch.save(
        OrderedDict((n, torch.from_numpy(np.ascontiguousarray(v)).float()) for n, v in state.items()), tmp_path / "a.pt"
    )
    return open_checkpoint(tmp_path / "a.pt")


def repaired(tmp_path, state, net, target_of):
    checkpoint = saved(tmp_path, state)
    goal = target_of({n: tuple(t.shape) for n, t in net.state_dict().items()})
    plan = diagnose(checkpoint, goal).plan
    assert plan is not None and plan.complete
    net.load_state_dict(apply_plan(checkpoint, plan))
    return net.eval()


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("sizes", [(5, 7), (6, 6)])
def test_kerass_layer_computes_the_same_in_torch(cell, sizes, tmp_path, target_of):
    gates, rows, run = (4, (), keras_lstm) if cell == "lstm" else (3, (2,), keras_gru)
    w, u, b = tensors(gates, *sizes, rows)
    head, more = G.standard_normal((sizes[1], 3)), G.standard_normal(3)
    names = (f"rnn/{cell}_cell/kernel:0", f"rnn/{cell}_cell/recurrent_kernel:0", f"rnn/{cell}_cell/bias:0")
    state = dict(zip(names, (w, u, b), strict=True)) | {"fc/kernel:0": head, "fc/bias:0": more}
    layer = (nn.LSTM if cell == "lstm" else nn.GRU)(*sizes)
    net = repaired(tmp_path, state, nn.ModuleDict({"rnn": layer, "fc": nn.Linear(sizes[1], 3)}), target_of)
    x = G.standard_normal((9, sizes[0]))
    with torch.no_grad():
        last = layer(torch.from_numpy(x).float()[:, None])[0][-1, 0]
        out = net["fc"](last)
    np.testing.assert_allclose(last.numpy(), run(x, w, u, b), atol=1e-5)
    np.testing.assert_allclose(out.numpy(), run(x, w, u, b) @ head + more, atol=1e-4)


def gru_state(rows):
    w, u, b = tensors(3, 5, 7, rows)
    return {"gru/kernel": w, "gru/recurrent_kernel": u, "gru/bias": b}


def goal_of(target_of, net):
    return target_of({n: tuple(t.shape) for n, t in net.state_dict().items()})


def test_a_gru_whose_reset_comes_before_the_product_is_no_gru_of_torchs(tmp_path, target_of):
    plan = diagnose(saved(tmp_path, gru_state(())), goal_of(target_of, nn.ModuleDict({"gru": nn.GRU(5, 7)}))).plan
    assert plan is None or not plan.complete


def test_two_layers_of_one_size_are_told_by_their_names_alone(tmp_path, target_of):
    state = {f"{name}/{leaf.partition('/')[2]}": v for name in ("a", "b") for leaf, v in gru_state((2,)).items()}
    for names, complete in ((("a", "b"), True), (("x", "y"), False)):
        goal = goal_of(target_of, nn.ModuleDict({name: nn.GRU(5, 7) for name in names}))
        plan = diagnose(saved(tmp_path, state), goal).plan
        assert (plan is not None and plan.complete) is complete


def test_both_ways_of_a_bidirectional_layer_go_their_way(tmp_path, target_of):
    state = {}
    for way in ("forward", "backward"):
        w, u, b = tensors(4, 5, 7, ())
        at = f"bidirectional/{way}_lstm/lstm_cell"
        state |= {f"{at}/kernel": w, f"{at}/recurrent_kernel": u, f"{at}/bias": b}
    layer = nn.LSTM(5, 7, bidirectional=True)
    repaired(tmp_path, state, nn.ModuleDict({"rnn": layer}), target_of)
    x = G.standard_normal((6, 5))
    with torch.no_grad():
        out = layer(torch.from_numpy(x).float()[:, None])[0][:, 0].numpy()
    ons, backs = ([v for n, v in state.items() if way in n] for way in ("forward", "backward"))
    np.testing.assert_allclose(out[-1, :7], keras_lstm(x, *ons), atol=1e-5)
    np.testing.assert_allclose(out[0, 7:], keras_lstm(x[::-1], *backs), atol=1e-5)


@pytest.mark.parametrize(("layer", "letters"), [(nn.LSTM, "ifgo"), (nn.GRU, "rzn")])
def test_gates_apart_are_joined_as_the_documentation_names_them(layer, letters, tmp_path, target_of):
    """The formulas of torch's documentation with the file's own tensors."""
    state = {}
    for letter in reversed(letters):
        state |= {f"rnn.W_i{letter}": G.standard_normal((7, 5)), f"rnn.W_h{letter}": G.standard_normal((7, 7))}
        state |= {f"rnn.b_i{letter}": G.standard_normal(7), f"rnn.b_h{letter}": G.standard_normal(7)}
    own = layer(5, 7)
    repaired(tmp_path, state, nn.ModuleDict({"rnn": own}), target_of)
    x = G.standard_normal(5)
    i = {a: state[f"rnn.W_i{a}"] @ x + state[f"rnn.b_i{a}"] for a in letters}
    h = {a: state[f"rnn.b_h{a}"] for a in letters}
    if letters == "ifgo":
        wanted = sigmoid(i["o"] + h["o"]) * np.tanh(sigmoid(i["i"] + h["i"]) * np.tanh(i["g"] + h["g"]))
    else:
        z = sigmoid(i["z"] + h["z"])
        wanted = (1 - z) * np.tanh(i["n"] + sigmoid(i["r"] + h["r"]) * h["n"])
    with torch.no_grad():
        out = own(torch.from_numpy(x).float()[None, None])[0][0, 0].numpy()
    np.testing.assert_allclose(out, wanted, atol=1e-5)


@pytest.mark.parametrize("shape", [(5, 7), (7, 7)])
def test_gates_that_lie_the_other_way_round_or_may_do_so_are_not_joined(shape, tmp_path, target_of):
    state = {f"rnn.W_i{a}": G.standard_normal(shape) for a in "ifgo"}
    state |= {f"rnn.W_h{a}": G.standard_normal((7, 7)) for a in "ifgo"}
    goal = goal_of(target_of, nn.ModuleDict({"rnn": nn.LSTM(shape[0], 7, bias=False)}))
    plan = diagnose(saved(tmp_path, state), goal).plan
    assert plan is None or not plan.complete
