"""Gates, rotary rows and flattened pictures whose numbers are made as training makes them, and their quiet twins."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.keys.diagnose import diagnose
from inspector.keys.witnesses.hearing import hear
from inspector.keys.witnesses.judging import judge
from inspector.keys.witnesses.types import Bearing
from inspector.readers import open_checkpoint

LAYERS, WIDTH, SIZE = 3, 96, 32


def heard(file, state, tmp_path, **choose):
    file = {n: np.ascontiguousarray(t, np.float32) for n, t in file.items()}
    save_file(file, tmp_path / "a.safetensors")
    checkpoint = open_checkpoint(tmp_path / "a.safetensors")
    tensors = tuple(TargetTensor(name=n, shape=t.shape, dtype="float32") for n, t in state.items())
    target = Target(label="the network", kind=TargetKind.FILE, tensors=tensors)
    answers = {key.replace("_", "-"): answer for key, answer in choose.items()}
    plan = diagnose(checkpoint, target, choose=answers).plan
    return {statement.witness: statement for statement in hear(checkpoint, plan, target)}


def noise(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def gated(lean):
    """Gates whose rows share a direction as far as `lean` says; values whose rows share none."""
    made = {}
    for i in range(LAYERS):
        for j, own in enumerate(("gate_proj", "up_proj")):
            rows = noise(10 * i + j, 3 * WIDTH, WIDTH) + (lean * noise(90 + i, WIDTH) if own == "gate_proj" else 0)
            made[f"layers.{i}.mlp.{own}.weight"] = rows
        made[f"layers.{i}.mlp.down_proj.weight"] = noise(50 + i, WIDTH, 3 * WIDTH)
    return made


def fused(state, order):
    made = {}
    for name, tensor in state.items():
        if ".gate_proj." in name:
            other = state[name.replace("gate_proj", "up_proj")]
            pair = (other, tensor) if order == "up-first" else (tensor, other)
            whole = np.stack(pair, 1).reshape(-1, WIDTH) if order == "row-by-row" else np.concatenate(pair)
            made[name.replace("gate_proj", "wi")] = whole
        elif ".up_proj." not in name:
            made[name] = tensor
    return made


@pytest.mark.parametrize("order", ["gate-first", "up-first", "row-by-row"])
def test_the_gate_is_the_half_that_leans(order, tmp_path):
    state = gated(lean=0.1)
    said = heard(fused(state, order), state, tmp_path)["gate-rows"]
    assert said.which(Bearing.FOR) == (order,) and len(said.which(Bearing.AGAINST)) == 2
    assert said.agree == said.layers == LAYERS


def test_gates_that_do_not_lean_say_nothing(tmp_path):
    assert heard(fused(gated(lean=0.0), "gate-first"), gated(lean=0.0), tmp_path) == {}


def turning(way, fall=0.5):
    """Rows of queries and keys whose norm falls with the place of their pair."""
    steps = np.exp(-fall * np.linspace(0, 1, SIZE // 2))
    scale = np.tile(np.concatenate([steps, steps]) if way == "halves" else np.repeat(steps, 2), WIDTH // SIZE)
    made = {"embed_tokens.weight": noise(1, 50, WIDTH)}
    for i in range(LAYERS):
        for j, own in enumerate("qkvo"):
            rows = noise(100 + 10 * i + j, WIDTH, WIDTH)
            made[f"layers.{i}.self_attn.{own}_proj.weight"] = rows * scale[:, None] if own in "qk" else rows
    return made


def metas(state, *, told):
    own = {f".self_attn.{x}_proj.": f".attention.w{x}." for x in "qkvo"}
    made = {}
    for name, tensor in state.items():
        for theirs, ours in own.items():
            name = name.replace(theirs, ours)
        made[name] = tensor
    return made | ({"inv_freq": noise(0, SIZE // 2)} if told else {})


@pytest.mark.parametrize(
    ("way", "right", "wrong"), [("pairs", f"heads-of-{SIZE}", "as-it-is"), ("halves", "as-it-is", f"heads-of-{SIZE}")]
)
def test_rotary_rows_speak_where_the_size_of_a_head_is_told(way, right, wrong, tmp_path):
    state = turning(way)
    said = heard(metas(state, told=True), state, tmp_path)["rotary-rows"]
    assert (said.which(Bearing.FOR), said.which(Bearing.AGAINST)) == ((right,), (wrong,))


def test_where_it_is_not_told_they_only_speak_against(tmp_path):
    """Halves of heads of 32 look as pairs of heads of 16 do."""
    state = turning("halves")
    said = heard(metas(state, told=False), state, tmp_path)["rotary-rows"]
    assert not said.which(Bearing.FOR)
    against = said.which(Bearing.AGAINST)
    assert f"heads-of-{SIZE}" in against and "as-it-is" not in against and f"heads-of-{SIZE // 2}" not in against


def test_rows_that_nothing_turns_say_nothing(tmp_path):
    state = turning("halves", fall=0.0)
    assert heard(metas(state, told=True), state, tmp_path) == {}


def flattened(smooth):
    """A network of two kernels and a matrix over a picture of 6 x 6 with 8 channels; smooth: as trained rows are."""
    rows = noise(3, 40, 8, 6, 6)
    for _ in range(smooth):
        rows = rows + np.roll(rows, 1, 2) + np.roll(rows, 1, 3)
    kernels = {"c1.weight": noise(1, 4, 3, 3, 3), "c2.weight": noise(2, 8, 4, 5, 5)}
    return kernels | {"fc.weight": rows.reshape(40, -1), "head.weight": noise(4, 5, 40)}


def channels_last(state, *, dense):
    made = {n: t.transpose(2, 3, 1, 0) if t.ndim == 4 else t for n, t in state.items()}
    if dense:
        made["fc.weight"] = state["fc.weight"].reshape(40, 8, 6, 6).transpose(0, 2, 3, 1).reshape(40, -1)
    return made


@pytest.mark.parametrize("truth", ["channels-first", "channels-last"])
def test_the_order_of_a_flattened_picture_is_seen(truth, tmp_path):
    state = flattened(smooth=1)
    said = heard(channels_last(state, dense=truth == "channels-last"), state, tmp_path)["neighbours"]
    assert said.which(Bearing.FOR) == (truth,) and said.layers == 40 and len(said.which(Bearing.AGAINST)) == 1


def test_a_picture_without_order_says_nothing(tmp_path):
    state = flattened(smooth=0)
    assert heard(channels_last(state, dense=True), state, tmp_path) == {}


def test_a_winner_has_to_be_far_above_chance_and_above_the_rest():
    sure = [{"a": 1.0, "b": 0.1, "c": 0.0}] * 4
    found = judge(sure, [0.1] * 4)
    assert found is not None and found.winners == {"a"} and (found.agree, found.layers) == (4, 4)
    assert judge([{"a": 0.2, "b": 0.0}] * 4, [0.1] * 4) is None, "4 deviations above none"
    assert judge([{"a": 1.0, "b": 0.8, "c": 0.0}] * 4, [0.1] * 4) is None, "another is near: right in part"
    torn = [{"a": 3.0, "b": 0.0}, {"a": 3.0, "b": 0.0}, {"a": 0.0, "b": 1.0}, {"a": 0.0, "b": 1.0}]
    assert judge(torn, [0.1] * 4) is None, "half of the layers say otherwise"
    same = judge([{"a": 1.0, "b": 1.0, "c": 0.0}] * 4, [0.1] * 4)
    assert same is not None and same.winners == {"a", "b"}


@pytest.mark.parametrize("truth", ["channels-first", "channels-last-8"])
def test_of_pictures_of_several_channels_the_right_one_is_seen(truth, tmp_path):
    """Beside the 8 channels of 6 x 6 a detector's 4 and 18 fit, of places that make no square."""
    state = flattened(smooth=2)
    state |= {"boxes.weight": noise(5, 18, 8, 1, 1), "logits.weight": noise(6, 2, 8, 1, 1)}
    order = ["c1.weight", "c2.weight", "logits.weight", "boxes.weight", "fc.weight", "head.weight"]
    state = {n: state[n] for n in order}
    said = heard(channels_last(state, dense=truth != "channels-first"), state, tmp_path)["neighbours"]
    assert said.which(Bearing.FOR) == (truth,) and truth not in said.which(Bearing.AGAINST)
