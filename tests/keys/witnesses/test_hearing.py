"""What the numbers of the trained sample say of its attentions and patches, in every order that is asked about."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.cli.main import run
from inspector.keys.diagnose import diagnose
from inspector.keys.report import FILE, TARGET
from inspector.keys.verify import verify_plan
from inspector.keys.witnesses.hearing import hear, may_be_heard
from inspector.keys.witnesses.types import Bearing
from inspector.readers import open_checkpoint
from tests.house_parsed import ROOT

DEPTH, WIDTH = 4, 96


@cache
def trained():
    """The sample with its queries, keys and values apart."""
    made = {}
    for name, tensor in load_file(ROOT / "sample_models/weights/shapes_vit.safetensors").items():
        stem, is_whole, leaf = name.partition("in_proj_")
        parts = dict(zip("qkv", np.split(tensor, 3), strict=True)) if is_whole else {}
        made |= {f"{stem}{part}_proj.{leaf}": half for part, half in parts.items()} if is_whole else {name: tensor}
    return made


def joined(state, order="qkv", number=1):
    """Queries, keys and values as one matrix, head by head for several heads."""
    made = {}
    for name, tensor in state.items():
        if ".q_proj." in name:
            parts = [state[name.replace("q_proj", f"{x}_proj")] for x in order]
            groups = [part.reshape(number, -1, *part.shape[1:]) for part in parts]
            made[name.replace("q_proj", "qkv")] = np.concatenate(groups, 1).reshape(-1, *tensor.shape[1:])
        elif ".k_proj." not in name and ".v_proj." not in name:
            made[name] = tensor
    return made


def target_like(state):
    tensors = tuple(TargetTensor(name=n, shape=t.shape, dtype="float32") for n, t in state.items())
    return Target(label="the network", kind=TargetKind.FILE, tensors=tensors)


def asked(file, state, tmp_path, **choose):
    save_file({n: np.ascontiguousarray(t) for n, t in file.items()}, tmp_path / "a.safetensors")
    checkpoint = open_checkpoint(tmp_path / "a.safetensors")
    answers = {key.replace("_", "-"): answer for key, answer in choose.items()}
    return checkpoint, diagnose(checkpoint, target_like(state), choose=answers).plan


def heard(file, state, tmp_path, **choose):
    checkpoint, plan = asked(file, state, tmp_path, **choose)
    return {statement.witness: statement for statement in hear(checkpoint, plan, target_like(state))}


def same_value(options, order):
    """Options that have the value where this order has it."""
    return {o for o in options if sorted(o) == sorted(order) and o.index("v") == order.index("v")}


@pytest.mark.parametrize("order", ["k-q-v", "v-k-q"])
def test_the_value_is_found_and_query_and_key_by_the_bias(order, tmp_path):
    said = heard(joined(trained(), order.replace("-", "")), trained(), tmp_path)
    options = [option for option, _ in said["value-rows"].options]
    assert set(said["value-rows"].which(Bearing.FOR)) == same_value(options, order)
    assert set(said["value-rows"].which(Bearing.AGAINST)) == set(options) - same_value(options, order) - {"otherwise"}
    assert (said["value-rows"].agree, said["value-rows"].layers) == (DEPTH, DEPTH)
    # The key's bias alone does not know the two others apart: k-first is k, q, v and k, v, q.
    at = order.index("k")
    assert set(said["key-bias"].which(Bearing.FOR)) == {
        o for o in options if sorted(o) == sorted(order) and o[at] == "k"
    }
    # Together they leave one.
    both = set(said["value-rows"].which(Bearing.FOR)) & set(said["key-bias"].which(Bearing.FOR))
    assert both == {order}


def test_head_by_head_is_told_from_below_each_other(tmp_path):
    said = heard(joined(trained(), number=4), trained(), tmp_path)["value-rows"]
    assert said.which(Bearing.FOR) == ("4-heads",) and "q-k-v" in said.which(Bearing.AGAINST)
    assert "In 4 of 4 layers" in said.says


def test_an_order_that_is_not_offered_is_not_replaced_by_the_nearest(tmp_path):
    """CodeGen's query, value, key within each of several groups is none of the options."""
    assert "value-rows" not in heard(joined(trained(), "qvk", number=4), trained(), tmp_path)


def test_it_answers_nothing(tmp_path):
    checkpoint, plan = asked(joined(trained()), trained(), tmp_path)
    assert hear(checkpoint, plan, target_like(trained())) and [q.id for q in plan.ambiguities] == ["qkv-order"]
    assert not plan.complete and plan.ambiguities[0].side == FILE


def test_an_answer_that_the_numbers_contradict_is_told_and_not_refused(tmp_path):
    checkpoint, plan = asked(joined(trained()), trained(), tmp_path, qkv_order="v-k-q")
    said = {s.witness: s for s in hear(checkpoint, plan, target_like(trained()))}
    assert said["value-rows"].chosen == "v-k-q" and said["value-rows"].contradicts
    assert not said["key-bias"].contradicts
    proof = next(p for p in verify_plan(checkpoint, plan, target_like(trained())).proofs if p.id == "answers")
    assert proof.passed is None and 'speak against "v-k-q" for qkv-order, and for q-k-v or k-q-v.' in proof.says


def test_an_answer_that_they_agree_with_holds(tmp_path):
    checkpoint, plan = asked(joined(trained()), trained(), tmp_path, qkv_order="q-k-v")
    proof = next(p for p in verify_plan(checkpoint, plan, target_like(trained())).proofs if p.id == "answers")
    assert proof.passed is True and "In 4 of 4 layers" in proof.says


def test_what_the_target_means_no_number_of_the_file_shows(tmp_path):
    checkpoint, plan = asked(trained(), joined(trained()), tmp_path)
    assert [q.side for q in plan.ambiguities] == [TARGET] and not may_be_heard(plan)
    assert hear(checkpoint, plan, target_like(joined(trained()))) == ()


def never_trained():
    rng = np.random.default_rng(0)
    return {n: rng.uniform(-0.1, 0.1, t.shape).astype(np.float32) for n, t in trained().items()}


def pruned():
    return {n: np.where(abs(t) < np.quantile(abs(t), 0.3), 0, t) if t.ndim > 1 else t for n, t in trained().items()}


def pieces(state):
    """Orthogonal, as some initialise: all norms are one."""
    return {n: np.linalg.qr(t)[0] if t.ndim == 2 and len(set(t.shape)) == 1 else t * 0 + 1 for n, t in state.items()}


@pytest.mark.parametrize("state", [never_trained(), pruned(), pieces(never_trained())], ids=["new", "pruned", "pieces"])
def test_numbers_that_can_say_nothing_say_nothing(state, tmp_path):
    assert "value-rows" not in heard(joined(state), state, tmp_path)


def test_half_precision_says_the_same(tmp_path):
    state = {n: torch.from_numpy(np.ascontiguousarray(t)).to(torch.bfloat16) for n, t in joined(trained()).items()}
    torch.save(state, tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    plan = diagnose(checkpoint, target_like(trained())).plan
    said = {s.witness: s for s in hear(checkpoint, plan, target_like(trained()))}
    assert set(said["value-rows"].which(Bearing.FOR)) == {"q-k-v", "k-q-v"}


def test_with_rotary_positions_a_key_bias_says_nothing(tmp_path):
    file, state = joined(trained()), dict(trained())
    for one in (file, state):
        one["encoder.rotary_emb.inv_freq"] = np.ones(12, np.float32)
    said = heard(file, state, tmp_path)
    assert "value-rows" in said and "key-bias" not in said


@pytest.mark.parametrize("truth", ["channels-first", "channels-last"])
def test_the_order_of_patches_is_seen(truth, tmp_path):
    state = trained()
    kernel = state["conv_proj.weight"]
    pictures = kernel if truth == "channels-first" else kernel.transpose(0, 2, 3, 1)
    said = heard(state | {"conv_proj.weight": pictures.reshape(len(kernel), -1)}, state, tmp_path)["neighbours"]
    assert said.which(Bearing.FOR) == (truth,) and len(said.which(Bearing.AGAINST)) == 1
    assert said.layers == WIDTH and said.agree > 0.75 * WIDTH


def test_the_command_says_it_beside_the_places(tmp_path, capsys):
    asked(joined(trained()), trained(), tmp_path)
    save_file(trained(), tmp_path / "goal.safetensors")
    line = ["diagnose", str(tmp_path / "a.safetensors"), "--target", f"file:{tmp_path}/goal.safetensors", "--values"]
    assert run(line) == 0
    said = capsys.readouterr().out
    assert "In 4 of 4 layers" in said and "speaks for" in said and "speaks against" in said
    assert run([*line, "--json", "--choose", "qkv-order=v-q-k"]) == 1, "the numbers speak against it"
    answer = json.loads(capsys.readouterr().out)
    assert answer["certificate"] is None and answer["statements"][0]["chosen"] == "v-q-k"
    assert dict(answer["statements"][0]["options"])["q-k-v"] == "for"
