"""fairseq's RoBERTa and transformers': one table for the names, zeros for segments, the head's bias once."""

from __future__ import annotations

import pytest
import torch

from inspector.errors import InspectorError
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint
from tests.keys.conftest import saved_checkpoint

WIDTH, WORDS, LAYERS = 6, 11, 2
SEGMENTS = "roberta.embeddings.token_type_embeddings.weight"
# (transformers' name, fairseq's) below a layer, each with weight and bias.
LAYER = (
    ("attention.self.query", "self_attn.q_proj", (WIDTH, WIDTH)),
    ("attention.self.key", "self_attn.k_proj", (WIDTH, WIDTH)),
    ("attention.self.value", "self_attn.v_proj", (WIDTH, WIDTH)),
    ("attention.output.dense", "self_attn.out_proj", (WIDTH, WIDTH)),
    ("attention.output.LayerNorm", "self_attn_layer_norm", (WIDTH,)),
    ("intermediate.dense", "fc1", (24, WIDTH)),
    ("output.dense", "fc2", (WIDTH, 24)),
    ("output.LayerNorm", "final_layer_norm", (WIDTH,)),
)


def both(top="encoder"):
    """(transformers' state dict, fairseq's) of one network."""
    torch.manual_seed(0)
    ours, theirs = {}, {}

    def put(one, other, *shape):
        theirs[other] = ours[one] = torch.randn(shape)

    inner = f"{top}.sentence_encoder"
    put("roberta.embeddings.word_embeddings.weight", f"{inner}.embed_tokens.weight", WORDS, WIDTH)
    put("roberta.embeddings.position_embeddings.weight", f"{inner}.embed_positions.weight", 9, WIDTH)
    ours[SEGMENTS] = torch.zeros(1, WIDTH)
    for leaf in ("weight", "bias"):
        put(f"roberta.embeddings.LayerNorm.{leaf}", f"{inner}.layernorm_embedding.{leaf}", WIDTH)
    for n in range(LAYERS):
        for one, other, shape in LAYER:
            put(f"roberta.encoder.layer.{n}.{one}.weight", f"{inner}.layers.{n}.{other}.weight", *shape)
            put(f"roberta.encoder.layer.{n}.{one}.bias", f"{inner}.layers.{n}.{other}.bias", shape[0])
    put("lm_head.bias", f"{top}.lm_head.bias", WORDS)
    for name, shape in (("dense.weight", (WIDTH, WIDTH)), ("dense.bias", (WIDTH,))):
        put(f"lm_head.{name}", f"{top}.lm_head.{name}", *shape)
    for leaf in ("weight", "bias"):
        put(f"lm_head.layer_norm.{leaf}", f"{top}.lm_head.layer_norm.{leaf}", WIDTH)
    theirs[f"{top}.lm_head.weight"] = ours["lm_head.decoder.weight"] = ours["roberta.embeddings.word_embeddings.weight"]
    ours["lm_head.decoder.bias"] = ours["lm_head.bias"].clone()
    return ours, theirs


def shapes(state):
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


TIED = {"ties": (("lm_head.bias", "lm_head.decoder.bias"),)}


@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize("top", ["encoder", "decoder"])
def test_fairseqs_file_for_transformers(top, prefix, target_of):
    ours, theirs = both(top)
    checkpoint = saved_checkpoint({prefix + name: tensor for name, tensor in theirs.items()})
    plan = diagnose(checkpoint, target_of(shapes(ours), **TIED)).plan
    assert plan is not None and plan.complete and not plan.ambiguities
    assert {"other-library", "segments"} <= {use.id for use in plan.rules}
    made = apply_plan(checkpoint, plan)
    assert made.keys() == ours.keys() and all(torch.equal(made[name], tensor) for name, tensor in ours.items())


def test_transformers_file_for_fairseq_and_its_lines(tmp_path, monkeypatch, target_of):
    ours, theirs = both()
    torch.save(ours, tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    plan = diagnose(checkpoint, target_of(shapes(theirs))).plan
    assert plan is not None and plan.complete and not plan.ambiguities
    made = apply_plan(checkpoint, plan)
    assert made.keys() == theirs.keys() and all(torch.equal(made[name], tensor) for name, tensor in theirs.items())

    class Loaded:
        def load_state_dict(self, state, strict):
            self.held = state

    model = Loaded()
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": model})
    assert model.held.keys() == theirs.keys() and all(torch.equal(model.held[n], t) for n, t in theirs.items())


@pytest.mark.parametrize("name", [SEGMENTS, "lm_head.decoder.bias"])
def test_what_would_be_lost_is_looked_at(name, target_of):
    ours, theirs = both()
    ours[name] = ours[name] + 1
    checkpoint = saved_checkpoint(ours)
    plan = diagnose(checkpoint, target_of(shapes(theirs))).plan
    with pytest.raises(InspectorError, match=name):
        apply_plan(checkpoint, plan)


def test_nothing_is_filled_for_another_writer(target_of):
    ours, _ = both()
    del ours[SEGMENTS]
    checkpoint = saved_checkpoint(ours)
    plan = diagnose(checkpoint, target_of(shapes(both()[0]))).plan
    assert plan is None or (not plan.complete and SEGMENTS in plan.missing)


def test_a_layer_more_is_not_forced(target_of):
    ours, theirs = both()
    theirs = {name: tensor for name, tensor in theirs.items() if ".layers.1." not in name}
    plan = diagnose(saved_checkpoint(theirs), target_of(shapes(ours), **TIED)).plan
    assert plan is None or (not plan.complete and "segments" not in [use.id for use in plan.rules])
