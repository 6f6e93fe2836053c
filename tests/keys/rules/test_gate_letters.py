"""Recurrent matrices whose names say the order of their gates: their rows are put into the target's order."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint

# (weights' names, biases' names, the order of the file in torch's letters)
LSTMS = (
    ("weight_{}_ifog", "bias_{}_ifog", "ifog"),
    ("W_{}_iofc", "b_{}_iofc", "iofg"),
    ("{}_fiog", "b{}_fiog", "fiog"),
    ("weight_gifo_{}", "bias_gifo_{}", "gifo"),
    ("{}_weight_ofig", "{}_bias_ofig", "ofig"),
    ("kernel_{}_ijfo", "bias_{}_ijfo", "igfo"),
    ("weight_{}_input_output_forget_cell", "bias_{}_input_output_forget_cell", "iofg"),
    ("weight_{}_ifco", "bias_{}_ifco", "ifgo"),
)
GRUS = (
    ("weight_{}_zrn", "bias_{}_zrn", "zrn"),
    ("weight_{}_zrh", "bias_{}_zrh", "zrn"),
    ("W_{}_zr_n", "b_{}_zr_n", "zrn"),
    ("weight_{}_update_reset_new", "bias_{}_update_reset_new", "zrn"),
    ("weight_{}_ruc", "bias_{}_ruc", "rzn"),
)


def _runs(tensor, ours, theirs):
    """Its rows, which lie in the order `ours`, in the order `theirs`."""
    runs = dict(zip(ours, tensor.chunk(len(ours)), strict=True))
    return torch.cat([runs[letter] for letter in theirs])


def _case(make, usual, way, bias_way, order, *, inputs, bias):
    torch.manual_seed(0)
    net = nn.ModuleDict({"rnn": make(inputs, 6, bias=bias), "fc": nn.Linear(6, 3)}).state_dict()
    state = {}
    for name, value in net.items():
        own = name.removeprefix("rnn.").removesuffix("_l0")
        kind, _, side = own.partition("_")
        named = f"rnn.{(way if kind == 'weight' else bias_way).format(side)}"
        state[named if own != name else name] = _runs(value, usual, order) if own != name else value
    return net, state


def _file(state, tmp_path, level=""):
    torch.save({level + name: value for name, value in state.items()}, tmp_path / "net.pth")
    return open_checkpoint(tmp_path / "net.pth")


@pytest.mark.parametrize("level", ["", "module."])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("inputs", [6, 8])
@pytest.mark.parametrize(
    ("make", "usual", "names"),
    [*((nn.LSTM, "ifgo", names) for names in LSTMS), *((nn.GRU, "rzn", names) for names in GRUS)],
)
def test_gates_are_put_into_torchs_order(make, usual, names, inputs, bias, level, tmp_path, target_of):
    net, state = _case(make, usual, *names, inputs=inputs, bias=bias)
    checkpoint = _file(state, tmp_path, level)
    plan = diagnose(checkpoint, target_of({name: tuple(value.shape) for name, value in net.items()})).plan
    assert plan.complete and not plan.ambiguities
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(torch.as_tensor(made[name]), value) for name, value in net.items())


@pytest.mark.parametrize(
    "way", ["rnn/weight_{}_ifog", "rnn_ifog.weight_{}_l0", "rnn_weight_{}_ifog", "rnn.weights_{}_ifog_l0"]
)
def test_wherever_the_order_stands(way, tmp_path, target_of):
    net, state = _case(nn.LSTM, "ifgo", "{}", "{}", "ifog", inputs=8, bias=False)
    state = {way.format(name[-2:]) if name.startswith("rnn") else name: value for name, value in state.items()}
    checkpoint = _file(state, tmp_path)
    goal = target_of({name: tuple(value.shape) for name, value in net.items()})
    plan = diagnose(checkpoint, goal).plan
    plan = diagnose(checkpoint, goal, choose={one.id: one.options[0][0] for one in plan.ambiguities}).plan
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(torch.as_tensor(made[name]), value) for name, value in net.items())


def test_a_target_may_say_the_order_too(tmp_path, target_of):
    net, state = _case(nn.LSTM, "ifgo", *LSTMS[0], inputs=6, bias=True)
    goal = target_of({name: tuple(value.shape) for name, value in state.items()})
    checkpoint = _file(net, tmp_path)
    made = apply_plan(checkpoint, diagnose(checkpoint, goal).plan)
    assert all(torch.equal(torch.as_tensor(made[name]), value) for name, value in state.items())


@pytest.mark.parametrize("inputs", [6, 8])
@pytest.mark.parametrize("word", ["x", "gru", "run", "info"])
def test_a_word_that_is_no_order_is_asked_about_and_not_which_is_which(word, inputs, tmp_path, target_of):
    names = f"weight_{{}}_{word}", f"bias_{{}}_{word}"
    net, state = _case(nn.LSTM, "ifgo", *names, "ifgo", inputs=inputs, bias=True)
    checkpoint = _file(state, tmp_path)
    goal = target_of({name: tuple(value.shape) for name, value in net.items()})
    report = diagnose(checkpoint, goal)
    assert [one.id for one in report.plan.ambiguities] == ["gate-letters"]
    assert f'"{word}"' in report.says and "which is which" not in report.says
    plan = diagnose(checkpoint, goal, choose={"gate-letters": "as-placed"}).plan
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(torch.as_tensor(made[name]), value) for name, value in net.items())
    left = diagnose(checkpoint, goal, choose={"gate-letters": "leave-out"})
    assert left.plan is None or not left.plan.complete


def test_letters_of_another_layer_are_not_followed(tmp_path, target_of):
    """Four gates in the names, three in the target's layer, whose rows four would divide as well."""
    torch.manual_seed(0)
    net = nn.ModuleDict({"rnn": nn.GRU(8, 8), "fc": nn.Linear(8, 3)}).state_dict()
    state = {name.replace("_l0", "_ifog"): value for name, value in net.items()}
    report = diagnose(_file(state, tmp_path), target_of({name: tuple(value.shape) for name, value in net.items()}))
    assert report.plan is None or not report.plan.complete


def test_torchs_own_names_are_as_they_are(tmp_path, target_of):
    torch.manual_seed(0)
    net = nn.ModuleDict({"rnn": nn.LSTM(6, 6, 2, bidirectional=True)}).state_dict()
    goal = target_of({name.replace("rnn.", "lstm."): tuple(value.shape) for name, value in net.items()})
    plan = diagnose(_file(net, tmp_path), goal).plan
    assert plan.complete and "gate-letters" not in [rule.id for rule in plan.rules]
