"""Pictures that a file flattens or unfolds place by place: what Keras would compute, in NumPy with channels last,
against what torch computes with the repaired weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

G = np.random.default_rng(7)
PICTURE = G.standard_normal((6, 6, 3))
LAST = {"flatten-order": "channels-last", "unfold-order": "channels-last"}


def normal(*shape):
    return G.standard_normal(shape) * 0.4


def conv(x, layer):
    """(h, w, channels) by a kernel (h, w, in, out), as Keras has it; no padding."""
    kernel, bias = layer
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[:2], axis=(0, 1))
    return np.maximum(np.einsum("hwcij,ijco->hwo", windows, kernel) + bias, 0)


def dense(x, layer):
    return x @ layer[0] + layer[1]


def layers(**shapes):
    """A file of Keras: a kernel and a bias for each of these shapes of kernels."""
    return {name: (normal(*shape), normal(shape[-1])) for name, shape in shapes.items()}


CONVS = {"conv1": (3, 3, 3, 4), "conv2": (3, 3, 4, 8)}


def flat(file):
    return conv(conv(PICTURE, file["conv1"]), file["conv2"]).reshape(-1)


def tensors(file):
    return {f"{n}/{k}": v for n, layer in file.items() for k, v in zip(("kernel", "bias"), layer, strict=True)}


def saved(tmp_path, arrays):
    state = {n: torch.from_numpy(np.ascontiguousarray(v)).float() for n, v in arrays.items()}
    torch.save(state, tmp_path / "a.pth")
    return open_checkpoint(tmp_path / "a.pth")


def put(net, checkpoint, goal, monkeypatch, tmp_path, choose=LAST):
    """The network with the file's weights, by the plan and by the exported code, which agree."""
    open_plan = diagnose(checkpoint, goal).plan
    assert not open_plan.complete
    asked = {q.id: q for q in open_plan.ambiguities}
    plan = diagnose(checkpoint, goal, choose={n: o for n, o in choose.items() if n in asked}).plan
    assert plan.complete and verify_plan(checkpoint, plan, goal).holds
    made = apply_plan(checkpoint, plan)
    net.load_state_dict(made)
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": net})
    assert all(torch.equal(net.state_dict()[n], t) for n, t in made.items())
    return asked


def listed(net, order):
    """The target's names and shapes in the model's own order, sorted, or its linear layers first."""
    names = {n: tuple(t.shape) for n, t in net.state_dict().items() if not n.endswith("num_batches_tracked")}
    if order == "sorted":
        return dict(sorted(names.items()))
    if order == "heads first":
        return dict(sorted(names.items(), key=lambda item: len(names[f"{item[0].rpartition('.')[0]}.weight"]) != 2))
    return names


class Net(nn.Module):
    def __init__(self, **more):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 8, 3)
        for name, layer in more.items():
            self.add_module(name, layer)

    def flat(self):
        x = torch.from_numpy(PICTURE).float().permute(2, 0, 1)[None]
        return self.conv2(self.conv1(x).relu()).relu().flatten(1)


@pytest.mark.parametrize("order", ["own", "sorted", "heads first"])
@pytest.mark.parametrize("names", [("value", "advantage"), ("a_head", "b_head")])
def test_every_layer_that_reads_one_picture_is_reordered(names, order, tmp_path, target_of, monkeypatch):
    """Of two the second was left; none was asked about where it is listed before its convolutions."""
    file = layers(**CONVS, **{name: (32, width) for name, width in zip(names, (5, 6), strict=True)})
    net = Net(**{name: nn.Linear(32, width) for name, width in zip(names, (5, 6), strict=True)})
    asked = put(net, saved(tmp_path, tensors(file)), target_of(listed(net, order)), monkeypatch, tmp_path)
    assert set(asked) == {"flatten-order"}
    assert set(asked["flatten-order"].places) == {f"{name}.weight" for name in names}
    for name in names:
        ours = getattr(net, name)(net.flat())[0].detach().numpy()
        assert np.allclose(ours, dense(flat(file), file[name]), atol=1e-4)


@pytest.mark.parametrize("order", ["own", "sorted"])
def test_a_norm_of_a_flattened_picture_is_reordered(order, tmp_path, target_of, monkeypatch):
    file = layers(**CONVS, fc=(32, 5))
    gamma, beta, mean, variance = normal(32), normal(32), normal(32), normal(32) ** 2 + 0.5
    more = {"bn/gamma": gamma, "bn/beta": beta, "bn/moving_mean": mean, "bn/moving_variance": variance}
    net = Net(bn=nn.BatchNorm1d(32), fc=nn.Linear(32, 5)).eval()
    goal = target_of({n: s for n, s in listed(net, order).items() if "tracked" not in n})
    checkpoint = saved(tmp_path, tensors(file) | more)
    plan = diagnose(checkpoint, goal, choose={"flatten-order": "channels-last"}).plan
    net.load_state_dict(apply_plan(checkpoint, plan), strict=False)
    normed = (flat(file) - mean) / np.sqrt(variance + 1e-5) * gamma + beta
    assert np.allclose(net.fc(net.bn(net.flat()))[0].detach().numpy(), dense(normed, file["fc"]), atol=1e-4)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(("gates", "both"), [(4, False), (4, True), (3, False)])
def test_a_recurrent_layer_behind_convolutions_is_reordered(gates, both, tmp_path, target_of, monkeypatch):
    """Keras's Reshape((steps, places x channels)) in front of an LSTM or GRU."""
    file = layers(**CONVS, fc=(7 * (1 + both), 5))
    arrays = tensors(file)
    cells = []
    for way in ("forward", "backward")[: 1 + both]:
        rows = (gates * 7,) if gates == 4 else (2, gates * 7)
        w, u, b = normal(16, gates * 7), normal(7, gates * 7), normal(*rows)
        cells.append((w, u, b))
        arrays |= {f"{way}_rnn/{n}": x for n, x in (("kernel", w), ("recurrent_kernel", u), ("bias", b))}
    kind = nn.LSTM if gates == 4 else nn.GRU
    net = Net(rnn=kind(16, 7, bidirectional=both, batch_first=True), fc=nn.Linear(7 * (1 + both), 5))
    goal = target_of(listed(net, "own"))
    asked = put(net, saved(tmp_path, arrays), goal, monkeypatch, tmp_path)
    assert set(asked) == {"flatten-order"} and len(asked["flatten-order"].places) == 1 + both
    steps = conv(conv(PICTURE, file["conv1"]), file["conv2"]).reshape(2, 16)  # rows of 2 places x 8 channels
    x = net.flat().reshape(1, 8, 2, 2).permute(0, 2, 1, 3).flatten(2)
    theirs = net.rnn(x)[0]
    ends = [theirs[0, -1, :7], *([theirs[0, 0, 7:]] if both else [])]
    for (w, u, b), ours, rows in zip(cells, ends, (steps, steps[::-1]), strict=False):
        h = c = np.zeros(7)
        for row in rows:
            if gates == 4:
                i, f, g, o = np.split(row @ w + h @ u + b, 4)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
            else:
                xz, xr, xn = np.split(row @ w + b[0], 3)
                hz, hr, hn = np.split(h @ u + b[1], 3)
                z = sigmoid(xz + hz)
                h = z * h + (1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn)
        assert np.allclose(ours.detach().numpy(), h, atol=1e-4)


@pytest.mark.parametrize("order", ["own", "sorted"])
@pytest.mark.parametrize("norm", [True, False])
def test_an_unfolded_picture_has_the_channels_that_its_convolution_takes_in(
    norm, order, tmp_path, target_of, monkeypatch
):
    """96 = 16 x 6 as well as 8 x 12, and the convolution has 12 filters over 6 channels."""
    file = layers(fc=(3, 96), conv1=(3, 3, 6, 12), conv2=(1, 1, 12, 3))
    net = nn.Module()
    net.fc = nn.Linear(3, 96)
    if norm:
        net.bn = nn.BatchNorm2d(6)
    net.conv1, net.conv2 = nn.Conv2d(6, 12, 3), nn.Conv2d(12, 3, 1)
    net.eval()
    names = {n: s for n, s in listed(net, order).items() if "tracked" not in n}
    arrays = tensors(file)
    if norm:
        gamma, beta, mean, variance = normal(6), normal(6), normal(6), normal(6) ** 2 + 0.5
        arrays |= {"bn/gamma": gamma, "bn/beta": beta, "bn/moving_mean": mean, "bn/moving_variance": variance}
    checkpoint, goal = saved(tmp_path, arrays), target_of(names)
    (question,) = diagnose(checkpoint, goal).plan.ambiguities
    assert question.id == "unfold-order"
    options = [option for option, _ in question.options]
    assert options == ["channels-first", "channels-last"]
    plan = diagnose(checkpoint, goal, choose={"unfold-order": options[1]}).plan
    net.load_state_dict(apply_plan(checkpoint, plan), strict=False)
    code = normal(3)
    x = dense(code, file["fc"]).reshape(4, 4, 6)
    y = net.fc(torch.from_numpy(code).float()).reshape(1, 6, 4, 4)
    if norm:
        x, y = (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta, net.bn(y)
    x = conv(conv(x, file["conv1"]), file["conv2"])
    y = net.conv2(net.conv1(y).relu()).relu()
    assert np.allclose(y[0].permute(1, 2, 0).detach().numpy(), x, atol=1e-4)


@pytest.mark.parametrize("order", ["own", "sorted"])
def test_a_transposed_convolution_takes_in_the_first_of_its_channels(order, tmp_path, target_of, monkeypatch):
    file = layers(fc=(3, 64))
    net = nn.Module()
    net.fc, net.deconv1, net.deconv2 = nn.Linear(3, 64), nn.ConvTranspose2d(16, 8, 3), nn.ConvTranspose2d(8, 3, 3)
    arrays = tensors(file)
    for name, (ins, outs) in {"deconv1": (16, 8), "deconv2": (8, 3)}.items():
        arrays |= {f"{name}/kernel": normal(3, 3, outs, ins), f"{name}/bias": normal(outs)}
    asked = put(net, saved(tmp_path, arrays), target_of(listed(net, order)), monkeypatch, tmp_path)
    assert set(asked) == {"unfold-order"}
    code = normal(3)
    x = dense(code, file["fc"]).reshape(2, 2, 16)
    kernel = torch.from_numpy(arrays["deconv1/kernel"].transpose(3, 2, 0, 1)).float()
    theirs = functional.conv_transpose2d(torch.from_numpy(x).float().permute(2, 0, 1)[None], kernel)
    ours = functional.conv_transpose2d(net.fc(torch.from_numpy(code).float()).reshape(1, 16, 2, 2), net.deconv1.weight)
    assert torch.allclose(ours, theirs, atol=1e-4)


def keras_shapes(names):
    """These as Keras has them, by shape: kernels (h, w, in, out), matrices (in, out)."""
    made = {}
    for name, shape in names.items():
        table = "embed" in name
        if len(shape) > 2 or (len(shape) == 2 and not table):
            shape = (*shape[2:], shape[1], shape[0])
            name = name.removesuffix("weight") + "kernel"
        made[name.replace(".", "/")] = shape
    return made


BLOCK = {"qkv.weight": (96, 32), "proj.weight": (32, 32), "fc1.weight": (128, 32), "fc2.weight": (32, 128)}
NEIGHBOURS = {
    # One number for each channel.
    "pooled": {"c1.weight": (8, 3, 3, 3), "c2.weight": (32, 8, 3, 3), "fc.weight": (10, 32)},
    "bottlenecks": {
        "c1.weight": (32, 3, 3, 3),
        "c2.weight": (8, 32, 1, 1),
        "c3.weight": (32, 8, 3, 3),
        "bn3.weight": (32,),
        "bn3.bias": (32,),
        "fc.weight": (10, 32),
    },
    "a transformer over patches": {"patch.weight": (32, 3, 4, 4)} | {f"blocks.0.{n}": s for n, s in BLOCK.items()},
    "a transformer before its patches": {f"blocks.0.{n}": s for n, s in BLOCK.items()}
    | {"patch.weight": (32, 3, 4, 4)},
    "a gated layer": {"c.weight": (32, 3, 3, 3), "gate.weight": (256, 32), "down.weight": (32, 128)},
    "words before convolutions": {
        "embed.weight": (50, 64),
        "up.weight": (256, 64),
        "down.weight": (64, 256),
        "c1.weight": (8, 3, 3, 3),
        "c2.weight": (16, 8, 3, 3),
    },
    "a head before its convolutions": {"fc.weight": (10, 16), "c1.weight": (8, 3, 3, 3), "c2.weight": (16, 8, 3, 3)},
}


@pytest.mark.parametrize("order", ["own", "sorted"])
@pytest.mark.parametrize("name", NEIGHBOURS)
def test_what_reads_no_flattened_picture_is_not_asked_about(name, order, file_of, target_of):
    names = NEIGHBOURS[name]
    names |= {f"{n.removesuffix('weight')}bias": s[:1] for n, s in names.items() if len(s) > 1 and "embed" not in n}
    names = dict(sorted(names.items())) if order == "sorted" else names
    plan = diagnose(file_of(keras_shapes(names)), target_of(names)).plan
    assert plan is not None and plan.steps
    assert not {q.id.partition(":")[0] for q in plan.ambiguities} & {"flatten-order", "unfold-order"}


def test_of_several_channels_each_is_an_option(file_of, target_of):
    """A detector's boxes read the pictures of 16 channels that its own heads, of 3 and 12, come from."""
    names = {
        "body.weight": (8, 3, 3, 3),
        "pyramid.weight": (16, 8, 3, 3),
        "logits.weight": (3, 16, 1, 1),
        "boxes.weight": (12, 16, 1, 1),
        "fc6.weight": (40, 144),
        "fc7.weight": (5, 40),
    }
    names |= {f"{n.removesuffix('weight')}bias": s[:1] for n, s in names.items()}
    (question,) = diagnose(file_of(keras_shapes(names)), target_of(names)).plan.ambiguities
    assert {option for option, _ in question.options} >= {"channels-first", "channels-last-16", "channels-last-12"}
    plan = diagnose(file_of(keras_shapes(names)), target_of(names), choose={"flatten-order": "channels-last-16"}).plan
    assert plan.complete and [s.value for s in plan.steps if s.target == "fc6.weight"] == ["flattened:16,1,9,turned"]


def test_a_layer_whose_rows_and_columns_lie_otherwise_is_left_out(file_of, target_of):
    names = {"c.weight": (8, 3, 3, 3), "fc.weight": (32, 32), "up.weight": (8, 3, 3, 3), "up.bias": (3,)}
    names |= {"c.bias": (8,), "fc.bias": (32,)}
    answers = LAST | {"transposed": "transposed"}
    checkpoint, goal = file_of(keras_shapes(names)), target_of(names)
    asked = {q.id for q in diagnose(checkpoint, goal).plan.ambiguities}
    assert asked >= set(LAST)
    plan = diagnose(checkpoint, goal, choose=answers).plan
    assert not plan.complete and "fc.weight" in plan.missing
