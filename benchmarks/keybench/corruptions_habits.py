"""One network under the names of other libraries: a habit is a table from what a part is for to its name.

Tables after the libraries' own code (docs/libraries.md lists the sources). A name that is in no table stays, as
it would if only the blocks were written anew.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

from benchmarks.keybench.damage import Corruption, Damaged, Make, Row, State, damaged, renamed

BY_ORDER = ("same-order",)

_STACK = re.compile(
    r"(.*?)(?:encoder\.layers\.encoder_layer_|encoder\.layer\.|transformer\.h\.|model\.layers\.|transformer\.resblocks\."
    r"|encoder\.layers\.|blocks\.)([0-9]+)\.(.*?)\.?((?:in_proj_)?(?:weight|bias))"
)
# What a part of a block is for, by the names of BERT, GPT-2, Llama, CLIP, wav2vec 2.0, torchvision's and timm's ViTs.
_ROLES = {
    role: tuple(names.split())
    for role, names in {
        "q": "attention.self.query self_attn.q_proj attention.q_proj",
        "k": "attention.self.key self_attn.k_proj attention.k_proj",
        "v": "attention.self.value self_attn.v_proj attention.v_proj",
        "qkv": "attn.c_attn attn.qkv attn self_attention",
        "out": "attention.output.dense attn.c_proj self_attn.o_proj attn.out_proj attention.out_proj "
        "self_attention.out_proj attn.proj",
        "norm1": "attention.output.LayerNorm ln_1 input_layernorm layer_norm norm1",
        "fc1": "intermediate.dense mlp.c_fc feed_forward.intermediate_dense mlp.0 mlp.fc1",
        "fc2": "output.dense mlp.c_proj feed_forward.output_dense mlp.3 mlp.fc2",
        "gate": "mlp.gate_proj",
        "up": "mlp.up_proj",
        "down": "mlp.down_proj",
        "norm2": "output.LayerNorm ln_2 post_attention_layernorm final_layer_norm norm2",
    }.items()
}
_ROLE_OF = {name: role for role, names in _ROLES.items() for name in names}
_ORDER = ("q", "k", "v", "qkv", "out", "norm1", "fc1", "fc2", "gate", "up", "down", "norm2")


def _habit(stack: str, names: str) -> tuple[str, dict[str, str]]:
    """stack: with {i}; names: in the order of _ORDER."""
    return stack, dict(zip(_ORDER, names.split(), strict=True))


TRANSFORMERS: Mapping[str, tuple[str, dict[str, str]]] = {
    "lucidrains": _habit(
        "layers.{i}.",
        "0.to_q 0.to_k 0.to_v 0.to_qkv 0.to_out.0 0.norm 1.net.1 1.net.4 1.gate 1.up 1.down 1.net.0",
    ),
    "fairseq": _habit(
        "encoder.layers.{i}.",
        "self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.in_proj self_attn.out_proj self_attn_layer_norm "
        "fc1 fc2 fc1_g fc1_x fc2 final_layer_norm",
    ),
    "espnet": _habit(
        "encoder.encoders.{i}.",
        "self_attn.linear_q self_attn.linear_k self_attn.linear_v self_attn.linear_qkv self_attn.linear_out norm_mha "
        "feed_forward.w_1 feed_forward.w_2 feed_forward.gate feed_forward.up feed_forward.down norm_ff",
    ),
    "NeMo": _habit(
        "encoder.layers.{i}.",
        "self_attn.linear_q self_attn.linear_k self_attn.linear_v self_attn.qkv self_attn.linear_out norm_self_att "
        "feed_forward1.linear1 feed_forward1.linear2 mlp.gate mlp.up mlp.down norm_feed_forward1",
    ),
    "GGUF": _habit(
        "blk.{i}.",
        "attn_q attn_k attn_v attn_qkv attn_output attn_norm ffn_up ffn_down ffn_gate ffn_up ffn_down ffn_norm",
    ),
    "Megatron": _habit(
        "language_model.encoder.layers.{i}.",
        "self_attention.query self_attention.key self_attention.value self_attention.qkv self_attention.dense "
        "input_layernorm mlp.dense_h_to_4h mlp.dense_4h_to_h mlp.gate mlp.up mlp.down post_attention_layernorm",
    ),
    "DistilBERT": _habit(
        "transformer.layer.{i}.",
        "attention.q_lin attention.k_lin attention.v_lin attention.qkv_lin attention.out_lin sa_layer_norm ffn.lin1 "
        "ffn.lin2 ffn.gate ffn.up ffn.down output_layer_norm",
    ),
    "T5": _habit(
        "encoder.block.{i}.layer.",
        "0.SelfAttention.q 0.SelfAttention.k 0.SelfAttention.v 0.SelfAttention.qkv 0.SelfAttention.o 0.layer_norm "
        "1.DenseReluDense.wi 1.DenseReluDense.wo 1.DenseReluDense.wi_0 1.DenseReluDense.wi_1 1.DenseReluDense.wo "
        "1.layer_norm",
    ),
    "timm": _habit(
        "blocks.{i}.",
        "attn.q_proj attn.k_proj attn.v_proj attn.qkv attn.proj norm1 mlp.fc1 mlp.fc2 mlp.fc1_g mlp.fc1_x mlp.fc2 "
        "norm2",
    ),
    "torch.nn": _habit(
        "encoder.layers.{i}.",
        "self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.in_proj self_attn.out_proj norm1 linear1 linear2 "
        "gate up down norm2",
    ),
    "mmpretrain": _habit(
        "backbone.layers.{i}.",
        "attn.q attn.k attn.v attn.qkv attn.proj ln1 ffn.layers.0.0 ffn.layers.1 ffn.gate ffn.up ffn.down ln2",
    ),
    "SAM": _habit(
        "image_encoder.blocks.{i}.",
        "attn.q attn.k attn.v attn.qkv attn.proj norm1 mlp.lin1 mlp.lin2 mlp.gate mlp.up mlp.down norm2",
    ),
    "Hugging Face's ViT": _habit(
        "vit.encoder.layer.{i}.",
        "attention.attention.query attention.attention.key attention.attention.value attention.attention.qkv "
        "attention.output.dense layernorm_before intermediate.dense output.dense mlp.gate mlp.up mlp.down "
        "layernorm_after",
    ),
    "diffusers": _habit(
        "transformer_blocks.{i}.",
        "attn1.to_q attn1.to_k attn1.to_v attn1.to_qkv attn1.to_out.0 norm1 ff.net.0.proj ff.net.2 ff.gate ff.up "
        "ff.down norm3",
    ),
    "GPT-NeoX": _habit(
        "gpt_neox.layers.{i}.",
        "attention.query attention.key attention.value attention.qkv attention.dense input_layernorm mlp.dense_h_to_4h "
        "mlp.dense_4h_to_h mlp.gate mlp.up mlp.down post_attention_layernorm",
    ),
    "open_clip": _habit(
        "transformer.resblocks.{i}.",
        "attn.q_proj attn.k_proj attn.v_proj attn.in_proj attn.out_proj ln_1 mlp.c_fc mlp.c_proj mlp.gate mlp.up "
        "mlp.down ln_2",
    ),
    "Whisper": _habit(
        "encoder.blocks.{i}.",
        "attn.query attn.key attn.value attn.qkv attn.out attn_ln mlp.0 mlp.2 mlp.gate mlp.up mlp.down mlp_ln",
    ),
}


def in_habit(name: str, stack: str, names: Mapping[str, str]) -> str:
    found = _STACK.fullmatch(name)
    role = _ROLE_OF.get(found[3].removesuffix(".in_proj")) if found is not None else None
    if found is None or role is None:
        return name
    return f"{found[1]}{stack.format(i=found[2])}{names[role]}.{found[4].removeprefix('in_proj_')}"


def _as(habit: str) -> Callable[[str], str]:
    stack, names = TRANSFORMERS[habit]
    return lambda name: in_habit(name, stack, names)


def _any_sorted(own: State, chance: random.Random) -> Damaged:
    """By one of them, drawn, and in the order of the alphabet, as safetensors files often are."""
    rename = _as(chance.choice(sorted(TRANSFORMERS)))
    rows = [Row(rename(name), tensor, name) for name, tensor in own.items()]
    if all(row.key == row.place for row in rows):
        return Damaged({}, own, frozenset())
    return damaged(sorted(rows, key=lambda row: row.key), own)


_BLOCK = re.compile(r"(.*?)layer([1-4])\.([0-9]+)\.(conv|bn)([1-3])\.(.*)")
_SHORT = re.compile(r"(.*?)layer([1-4])\.([0-9]+)\.downsample\.([01])\.(.*)")
_STEM = re.compile(r"(.*?)(conv|bn)1\.(.*)")
Words = tuple[str, str, str, str, str, str]

# conv and norm of a block, of its shortcut, of the stem. {n} counts stages from 1, {m} from 2; {i} blocks from 0, {j}
# from 1; {k} layers from 1, {a} by letters.
RESNETS: Mapping[str, Words] = {
    "detectron2": (
        "res{m}.{i}.conv{k}",
        "res{m}.{i}.conv{k}.norm",
        "res{m}.{i}.shortcut",
        "res{m}.{i}.shortcut.norm",
        "stem.conv1",
        "stem.conv1.norm",
    ),
    "Caffe2": (
        "res{m}_{i}_branch2{a}",
        "res{m}_{i}_branch2{a}_bn",
        "res{m}_{i}_branch1",
        "res{m}_{i}_branch1_bn",
        "conv1",
        "res_conv1_bn",
    ),
    "Keras's ResNet": (
        "conv{m}_block{j}_{k}_conv",
        "conv{m}_block{j}_{k}_bn",
        "conv{m}_block{j}_0_conv",
        "conv{m}_block{j}_0_bn",
        "conv1_conv",
        "conv1_bn",
    ),
    "BiT": (
        "block{n}.unit0{j}.conv{k}",
        "block{n}.unit0{j}.gn{k}",
        "block{n}.unit0{j}.proj",
        "block{n}.unit0{j}.gn_proj",
        "root.conv",
        "root.gn",
    ),
    "SlowFast": (
        "s{m}.pathway0_res{i}.branch2.{a}",
        "s{m}.pathway0_res{i}.branch2.{a}_bn",
        "s{m}.pathway0_res{i}.branch1",
        "s{m}.pathway0_res{i}.branch1_bn",
        "s1.pathway0_stem.conv",
        "s1.pathway0_stem.bn",
    ),
    "mmcv's ConvModule": (
        "layer{n}.{i}.conv{k}.conv",
        "layer{n}.{i}.conv{k}.bn",
        "layer{n}.{i}.downsample.conv",
        "layer{n}.{i}.downsample.bn",
        "stem.conv",
        "stem.bn",
    ),
    "Paddle's ResNet": (
        "bb_{n}_{i}.conv{k}._conv",
        "bb_{n}_{i}.conv{k}._batch_norm",
        "bb_{n}_{i}.short._conv",
        "bb_{n}_{i}.short._batch_norm",
        "conv._conv",
        "conv._batch_norm",
    ),
}


def as_resnet(name: str, words: Words) -> str:
    block, short, stem = _BLOCK.fullmatch(name), _SHORT.fullmatch(name), _STEM.fullmatch(name)
    if block is not None:
        n, i, k = int(block[2]), int(block[3]), int(block[5])
        word = words[block[4] == "bn"].format(n=n, m=n + 1, i=i, j=i + 1, k=k, a="abc"[k - 1])
        return f"{block[1]}{word}.{block[6]}"
    if short is not None:
        n, i = int(short[2]), int(short[3])
        return f"{short[1]}{words[2 + int(short[4])].format(n=n, m=n + 1, i=i, j=i + 1)}.{short[5]}"
    if stem is not None and "layer" not in name:
        return f"{stem[1]}{words[4 + (stem[2] == 'bn')]}.{stem[3]}"
    return name


def _resnet(habit: str) -> Make:
    return _where(lambda own: any(_BLOCK.fullmatch(n) for n in own), renamed(lambda n: as_resnet(n, RESNETS[habit])))


def _where(fits: Callable[[State], bool], make: Make) -> Make:
    return lambda own, chance: make(own, chance) if fits(own) else Damaged({}, own, frozenset())


HABITS = (
    *(Corruption(f"as {habit}", renamed(_as(habit)), BY_ORDER) for habit in TRANSFORMERS),
    Corruption("as another library, sorted", _any_sorted, BY_ORDER, drawn=True),
    *(Corruption(f"as {habit}", _resnet(habit), BY_ORDER) for habit in RESNETS),
)
