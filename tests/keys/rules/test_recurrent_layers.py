"""The layers of one recurrent module and a module per layer, by their numbers; other meanings of one shape are left."""

from __future__ import annotations

import pytest
from torch import nn

from inspector.keys.diagnose import diagnose


def net(**modules):
    found = {f"{name}.{n}": tuple(t.shape) for name, m in modules.items() for n, t in m.state_dict().items()}
    return found | {"head.weight": (3, 8), "head.bias": (3,)}


def where(plan):
    return {s.target: s.source for s in plan.steps}


LIST = lambda n=2, kind=nn.LSTM: nn.ModuleList([kind(8, 8) for _ in range(n)])  # noqa: E731


@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_layers_of_one_module_and_modules_per_layer(prefix, kind, file_of, target_of):
    one, apart = net(rnn=kind(8, 8, 3)), net(rnns=LIST(3, kind))
    named = {
        n.replace("rnns.2", "lstm3").replace("rnns.1", "lstm2").replace("rnns.0", "lstm1"): s for n, s in apart.items()
    }
    for many, module in ((apart, "rnns.{}"), (named, "lstm{}")):
        for ours, goal in ((one, many), (many, one)):
            plan = diagnose(file_of({prefix + n: s for n, s in ours.items()}, ordered=False), target_of(goal)).plan
            assert plan.complete and not plan.needs_accept
            for layer in range(3):
                a = f"rnn.weight_hh_l{layer}"
                b = f"{module.format(layer + (many is named))}.weight_hh_l0"
                ours_name, goal_name = (a, b) if ours is one else (b, a)
                assert where(plan)[goal_name] == prefix + ours_name


def test_both_directions_and_projections_go_along(file_of, target_of):
    make = lambda i, n=1: nn.LSTM(i, 4, n, bidirectional=True, proj_size=3)  # noqa: E731
    one, apart = net(lstm=make(6, 2)), net(lstms=nn.ModuleList([make(6), make(6)]))
    for n in list(apart):  # the second layer takes both directions of the first
        if n.startswith("lstms.1.weight_ih"):
            apart[n] = (16, 6)
    plan = diagnose(file_of(one, ordered=False), target_of(apart)).plan
    assert plan.complete and where(plan)["lstms.1.weight_hr_l0_reverse"] == "lstm.weight_hr_l1_reverse"


@pytest.mark.parametrize(
    ("ours", "goal"),
    [
        # Two modules of two layers each, and which of them is the list nothing says.
        (net(a_lstm=nn.LSTM(8, 8, 2), b_lstm=nn.LSTM(8, 8, 2)), net(lstms=LIST())),
        # Two streams side by side have no numbers.
        (net(lstm=nn.LSTM(8, 8, 2)), net(lstm_text=nn.LSTM(8, 8), lstm_audio=nn.LSTM(8, 8))),
        # A deeper network.
        (net(lstm=nn.LSTM(8, 8, 3)), net(lstms=LIST(2))),
        (net(lstms=LIST(3)), net(lstm=nn.LSTM(8, 8, 2))),
        # Another word.
        (net(prior=nn.LSTM(8, 8, 2)), net(posterior=LIST())),
    ],
)
def test_what_the_numbers_do_not_say_is_not_placed_unasked(ours, goal, file_of, target_of):
    for ordered in (True, False):
        plan = diagnose(file_of(ours, ordered=ordered), target_of(goal)).plan
        assert plan is None or not plan.complete


def test_equal_sides_are_untouched(file_of, target_of):
    for same in (net(lstm=nn.LSTM(8, 8, 2)), net(lstms=LIST())):
        assert diagnose(file_of(same), target_of(same)).plan.rules == ()


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bias", [True, False])
def test_one_layer_is_a_cell(kind, bias, file_of, target_of):
    cell = {nn.LSTM: nn.LSTMCell, nn.GRU: nn.GRUCell, nn.RNN: nn.RNNCell}[kind](8, 6, bias=bias)
    layer = net(rnn=kind(8, 6, bias=bias))
    for ours, goal in ((layer, net(cell=cell)), (net(cell=cell), layer)):
        plan = diagnose(file_of(ours, ordered=False), target_of(goal)).plan
        assert plan.complete and not plan.needs_accept
        for target, source in where(plan).items():
            assert source.rpartition(".")[2].removesuffix("_l0") == target.rpartition(".")[2].removesuffix("_l0")


@pytest.mark.parametrize(
    ("ours", "goal"),
    [
        (net(encoder=nn.LSTM(8, 8), decoder=nn.LSTM(8, 8)), net(one=nn.LSTMCell(8, 8), other=nn.LSTMCell(8, 8))),
        (net(rnn=nn.LSTM(8, 8, bidirectional=True)), net(cell=nn.LSTMCell(8, 8))),
        (net(rnn=nn.LSTM(8, 8, 2)), net(cell=nn.LSTMCell(8, 8))),
        (net(rnn=nn.LSTM(8, 8, proj_size=4)), net(cell=nn.LSTMCell(8, 8))),
        (net(policy=nn.LSTM(8, 8)), net(value=nn.LSTMCell(8, 8))),
    ],
)
def test_what_is_no_single_layer_is_no_cell(ours, goal, file_of, target_of):
    plan = diagnose(file_of(ours, ordered=False), target_of(goal)).plan
    assert plan is None or not plan.complete or plan.needs_accept or plan.ambiguities


@pytest.mark.parametrize("word", ["onnx_lstm", "basic_lstm_cell", "haiku_lstm"])
def test_a_cell_of_another_word_is_no_layer_unasked(word, file_of, target_of):
    """It may tell of another order of the gates."""
    shapes = {"weight_ih": (24, 6), "weight_hh": (24, 6), "bias_ih": (24,), "bias_hh": (24,)}
    target = target_of({f"rnn.{name}_l0": shape for name, shape in shapes.items()})
    report = diagnose(file_of({f"rnn.{word}.{name}": shape for name, shape in shapes.items()}), target)
    assert report.plan is None or not report.plan.complete
    assert diagnose(file_of({f"rnn.lstm_cell.{name}": shape for name, shape in shapes.items()}), target).plan.complete
