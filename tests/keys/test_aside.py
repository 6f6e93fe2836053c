"""One tensor of its own, or a head of another count, does not keep all the others from being read."""

from __future__ import annotations

import pytest
import torch

from inspector import apply_plan, diagnose
from inspector.errors import KeysDoNotFit


def llama(names, layers=2, width=16):
    """names: of embedding, block, the six matrices, the block's two norms, the last norm and the head."""
    embed, block, matrices, norms, norm, head = names
    shapes = {embed: (40, width)}
    for i in range(layers):
        at = block.format(i)
        shapes |= {at + name: (width, width) for name in matrices[:4]}
        shapes |= {at + name: (24, width) for name in matrices[4:6]} | {at + matrices[6]: (width, 24)}
        shapes |= {at + name: (width,) for name in norms}
    return shapes | {norm: (width,), head: (40, width)}


META = (
    "tok_embeddings.weight",
    "layers.{}.",
    [
        *(f"attention.w{x}.weight" for x in "qkvo"),
        *(f"feed_forward.w{x}.weight" for x in "132"),
    ],
    ("attention_norm.weight", "ffn_norm.weight"),
    "norm.weight",
    "output.weight",
)
HF = (
    "model.embed_tokens.weight",
    "model.layers.{}.",
    [
        *(f"self_attn.{x}_proj.weight" for x in "qkvo"),
        *(f"mlp.{x}_proj.weight" for x in ("gate", "up", "down")),
    ],
    ("input_layernorm.weight", "post_attention_layernorm.weight"),
    "model.norm.weight",
    "lm_head.weight",
)


def filled(shapes):
    torch.manual_seed(0)
    return {name: torch.randn(shape) for name, shape in shapes.items()}


def test_rotary_frequencies_of_metas_code_do_not_spoil_the_reading(saved, target_of):
    tensors = filled(llama(META))
    frequencies = 1.0 / (10000 ** (torch.arange(0, 8, 2).float() / 8))
    checkpoint, goal = saved(tensors | {"rope.freqs": frequencies}), target_of(llama(HF))
    plan = diagnose(checkpoint, goal).plan
    assert plan.complete and not plan.ambiguities
    made = apply_plan(checkpoint, plan)
    for one, other in zip(llama(META), llama(HF), strict=True):
        # Queries and keys are put into halves.
        assert torch.equal(made[other].sort(0)[0], tensors[one].sort(0)[0])
    other = saved(tensors | {"rope.freqs": 1.0 / (500000 ** (torch.arange(0, 8, 2).float() / 8))})
    with pytest.raises(KeysDoNotFit, match=r"rope\.freqs"):
        apply_plan(other, diagnose(other, goal).plan)


def test_learned_frequencies_are_no_buffer(saved, target_of):
    ours = {"body.weight": (4, 4), "encoding.freqs": (8,)}
    assert diagnose(saved(filled(ours)), target_of({"body.weight": (4, 4)})).plan.needs_accept == ("extra-tensors",)


def whisper(prefix, embedding, words, head=""):
    shapes = {f"{prefix}{embedding}.weight": (30, 8)}
    for i in range(2):
        for name in ("query", "value", "out"):
            shapes[f"{prefix}{words['block']}.{i}.{words[name]}.weight"] = (8, 8)
            shapes[f"{prefix}{words['block']}.{i}.{words[name]}.bias"] = (8,)
    return shapes | ({f"{head}.weight": (30, 8)} if head else {})


def test_an_output_layer_that_repeats_the_embedding_does_not_spoil_the_reading(saved, target_of):
    theirs = {"block": "blocks", "query": "attn.query", "value": "attn.value", "out": "attn.out"}
    ours = {"block": "layers", "query": "self_attn.q_proj", "value": "self_attn.v_proj", "out": "self_attn.out_proj"}
    shapes = whisper("model.decoder.", "embed_tokens", ours, "proj_out")
    goal = whisper("decoder.", "token_embedding", theirs)
    tensors = filled(shapes)
    tensors["proj_out.weight"] = tensors["model.decoder.embed_tokens.weight"].clone()
    checkpoint = saved(tensors)
    plan = diagnose(checkpoint, target_of(goal)).plan
    assert plan.complete and not plan.ambiguities
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(made[b], tensors[a]) for a, b in zip(shapes, goal, strict=False))
    # One that was trained apart is information.
    other = saved(tensors | {"proj_out.weight": torch.randn(30, 8)})
    with pytest.raises(KeysDoNotFit, match="proj_out"):
        apply_plan(other, diagnose(other, target_of(goal)).plan)


def alex(names, classes, hidden=12):
    conv, first, second, last = names
    layers = {conv: (hidden, 3, 3, 3), first: (hidden, 4 * hidden), second: (hidden, hidden), last: (classes, hidden)}
    return {f"{n}.{x}": s if x == "weight" else s[:1] for n, s in layers.items() for x in ("weight", "bias")}


def test_a_renamed_head_as_large_as_a_hidden_layer_is_the_last(file_of, target_of):
    ours = alex(("conv1", "fc1", "fc2", "fc3"), 12)
    goal = alex(("features.0", "classifier.0", "classifier.2", "classifier.4"), 5)
    waiting = diagnose(file_of(ours), target_of(goal)).plan
    assert "head-mismatch" in waiting.needs_accept and not waiting.missing
    plan = diagnose(file_of(ours), target_of(goal), accept=waiting.needs_accept).plan
    goes = {step.source: step.target for step in plan.steps if step.source}
    assert plan.complete and goes["fc2.weight"] == "classifier.2.weight" and goes["fc3.weight"] is None
