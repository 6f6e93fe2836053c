"""Corruptions by other words: every module renamed as another author would, numbered otherwise, sorted or not.

The words here are taken from code of many authors, not from the engine's table; some it does not know. What is invented
is drawn by chance, and so is which synonym is taken; each is used throughout a file. The adversarial kinds leave names
that do not tell two parts apart: the right answer is to wait, not to guess.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable

from benchmarks.keybench.damage import Answer, Corruption, Damaged, Make, Row, State, damaged

BY_ORDER = ("same-order",)
Rename = Callable[[str], str]

# (what a segment is called, what other authors call it): {n} is the number behind it, {m} one less.
SYNONYMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"self_attention|self_attn|attn|attention|msa", ("attn", "attention", "self_attn", "mha", "sa", "att")),
    (r"mlp|ffn|feed_forward", ("mlp", "ffn", "ff", "feed_forward", "feedforward")),
    (r"q_proj|query|q", ("to_q", "query", "wq", "q_lin", "q_proj", "linear_q")),
    (r"k_proj|key|k", ("to_k", "key", "wk", "k_lin", "k_proj", "linear_k")),
    (r"v_proj|value|v", ("to_v", "value", "wv", "v_lin", "v_proj", "linear_v")),
    (r"o_proj|out_proj", ("to_out.0", "o_proj", "wo", "out_lin", "out_proj", "linear_out")),
    (r"gate_proj", ("gate", "gate_proj", "ffn_gate")),
    (r"up_proj", ("up", "up_proj", "ffn_up")),
    (r"down_proj", ("down", "down_proj", "ffn_down")),
    (r"qkv|in_proj|c_attn", ("qkv", "to_qkv", "qkv_proj", "Wqkv", "c_attn")),
    (r"fc([0-9])|linear_?([0-9])", ("fc{n}", "lin{n}", "linear{n}", "dense_{n}", "fc_{n}", "linear_{n}", "dense.{m}")),
    (r"c_fc|intermediate_dense", ("fc1", "c_fc", "lin1", "fc_in")),
    (r"output_dense", ("fc2", "lin2", "fc_out")),
    (r"norm([0-9])|ln_([0-9])", ("norm{n}", "ln_{n}", "ln{n}", "layer_norm{n}", "layernorm_{n}", "norms.{m}")),
    (r"bn([0-9])", ("bn{n}", "norm{n}", "batchnorm{n}", "bn_{n}", "norms.{m}", "batch_norm_{n}")),
    (r"conv([0-9])", ("conv{n}", "conv_{n}", "cv{n}", "convs.{m}", "convolution{n}", "conv2d_{n}")),
    (r"layer([0-9])", ("layer{n}", "stage{n}", "stages.{m}", "layers.{m}", "block{n}", "res{n}", "stage{m}")),
    (r"layers|blocks|resblocks|h", ("layers", "blocks", "layer", "block", "h", "resblocks", "units")),
    (r"stages", ("stages", "stage", "layers", "levels")),
    (r"features", ("features", "trunk", "backbone", "feature_extractor", "body")),
    (r"encoder", ("encoder", "enc", "Encoder")),
    (r"decoder", ("decoder", "dec")),
    (r"classifier|head|fc|lm_head", ("classifier", "head", "fc", "clf", "output_layer", "cls_head", "logits")),
    (r"downsample", ("downsample", "shortcut", "skip", "identity_conv")),
    (r"patch_embed", ("patch_embed", "patch_embedding", "patch_embeddings", "to_patch_embedding")),
    (r"pos_embed|pos_embedding|positional_embedding", ("pos_embed", "position_embedding", "pos_emb", "pos_embedding")),
    (r"cls_token|class_token", ("cls_token", "class_token", "cls_embedding")),
    (r"wte|word_embeddings|embed_tokens|token_embedding", ("tok_embeddings", "wte", "embed_tokens", "token_emb")),
    (r"wpe|position_embeddings", ("wpe", "position_embeddings", "pos_emb")),
    (r"stem", ("stem", "root", "initial")),
    (r"down([0-9])", ("down{n}", "downs.{m}", "down_{n}", "down_blocks.{m}")),
    (r"up([0-9])", ("up{n}", "ups.{m}", "up_{n}", "up_blocks.{m}")),
    (r"input_layernorm", ("attention_norm", "input_layernorm", "ln_1", "norm1")),
    (r"post_attention_layernorm", ("ffn_norm", "ln_2", "norm2")),
    (r"ln_f|final_norm", ("ln_f", "final_layernorm", "norm_f")),
)
_ROWS = [(re.compile(pattern), others) for pattern, others in SYNONYMS]
_LEAVES = frozenset({"weight", "bias", "running_mean", "running_var", "num_batches_tracked"})


def synonyms(chance: random.Random) -> Rename:
    """One author: a word for each of the table's, everywhere the same."""
    taken = [chance.choice(others) for _, others in _ROWS]

    def segment(text: str) -> str:
        for (pattern, _), other in zip(_ROWS, taken, strict=True):
            found = pattern.fullmatch(text)
            if found is not None:
                number = next((int(g) for g in found.groups() if g), 1)
                return other.format(n=number, m=number - 1)
        return text

    return lambda name: ".".join(segment(s) if s not in _LEAVES else s for s in name.split("."))


def renumbered(chance: random.Random) -> Rename:
    """Lists counted from 1, or their number joined to the word before."""
    style = chance.choice(("from 1", "joined", "joined from 1", "underscore"))

    def rename(name: str) -> str:
        parts: list[str] = []
        for s in name.split("."):
            if s.isdigit() and parts and not parts[-1][-1].isdigit():
                number = int(s) + ("1" in style)
                join = "_" if style == "underscore" else ""
                if style.startswith("from"):
                    parts.append(str(number))
                else:
                    parts[-1] += f"{join}{number}"
            else:
                parts.append(s)
        return ".".join(parts)

    return rename


def invented(chance: random.Random, share: float, keep: Rename) -> Rename:
    """Words drawn by chance for a share of all, after another renaming."""
    made: dict[str, str] = {}

    def word(stem: str) -> str:
        if stem not in made:
            letters = "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(3))
            made[stem] = letters if chance.random() < share else stem
        return made[stem]

    def segment(text: str) -> str:
        found = re.fullmatch(r"([A-Za-z_]*[A-Za-z])(_?[0-9]*)", text)
        return word(found[1]) + found[2] if found is not None and text not in _LEAVES else text

    return lambda name: ".".join(segment(s) for s in keep(name).split("."))


def _rows(own: State, rename: Rename) -> list[Row]:
    return [Row(rename(name), tensor, name) for name, tensor in own.items()]


def _made(
    *, words: bool = False, numbers: bool = False, share: float = 0.0, ordered: bool = True, shuffled: bool = False
) -> Make:
    def make(own: State, chance: random.Random) -> Damaged:
        one = synonyms(chance) if words else lambda name: name
        two = renumbered(chance) if numbers else lambda name: name
        both: Rename = lambda name: two(one(name))  # noqa: E731
        rows = _rows(own, invented(chance, share, both) if share else both)
        if shuffled:
            chance.shuffle(rows)
        return damaged(rows if ordered else sorted(rows, key=lambda row: row.key), own)

    return make


def _towers(names: Iterable[tuple[str, str]], *, expects_words: bool) -> Make:
    """Two networks of one kind side by side, under other names; the target's names first."""
    pairs = tuple(names)

    def make(own: State, chance: random.Random) -> Damaged:
        if len(own) > 400:
            return Damaged({}, own, frozenset())
        truth: State = {}
        rows = []
        for number, (theirs, ours) in enumerate(pairs):
            for name, tensor in own.items():
                value = tensor * (1.0 + number / 8) if tensor.is_floating_point() else tensor + number
                truth[f"{theirs}.{name}"] = value
                rows.append(Row(f"{ours}.{name}", value, f"{theirs}.{name}"))
        return damaged(rows if expects_words else sorted(rows, key=lambda row: row.key), truth)

    return make


# Names that mean two things, or that nobody wrote before, for parts of one shape in one block.
_TRAPS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("q_proj", "k_proj"), ("zarbo", "miklu")),
    (("query", "key"), ("beril", "adomo")),
    (("q_proj", "k_proj", "v_proj"), ("proj_c", "proj_a", "proj_b")),
    (("query", "key", "value"), ("dense_c", "dense_a", "dense_b")),
    (("gate_proj", "up_proj"), ("w2", "w1")),
    (("norm1", "norm2"), ("zz_norm", "aa_norm")),
    (("ln_1", "ln_2"), ("zz_ln", "aa_ln")),
    (("input_layernorm", "post_attention_layernorm"), ("zz_layernorm", "aa_layernorm")),
    (("conv1", "conv2"), ("proj_x", "proj_b")),
    (("bn1", "bn2"), ("zz_bn", "aa_bn")),
    (("layer_norm", "final_layer_norm"), ("zz_norm", "aa_norm")),
)


def _trap(own: State, chance: random.Random) -> Damaged:
    """Two or three parts of one shape under names that tell nothing; all else as it is, sorted."""
    fitting = [row for row in _TRAPS if all(any(f".{w}." in name for name in own) for w in row[0])]
    if not fitting:
        return Damaged({}, own, frozenset())
    old, new = chance.choice(fitting)
    table = dict(zip(old, new, strict=True))
    shapes = {w: sorted({tuple(t.shape) for n, t in own.items() if f".{w}." in n}) for w in old}
    if len({str(s) for s in shapes.values()}) > 1:
        return Damaged({}, own, frozenset())
    rows = _rows(own, lambda name: ".".join(table.get(s, s) for s in name.split(".")))
    return damaged(sorted(rows, key=lambda row: row.key), own)


WORDS = (
    Corruption("words: synonyms", _made(words=True), BY_ORDER, drawn=True),
    Corruption("words: synonyms, sorted", _made(words=True, ordered=False), BY_ORDER, drawn=True),
    Corruption("words: synonyms, shuffled", _made(words=True, shuffled=True), BY_ORDER, drawn=True),
    Corruption("words: other numbering", _made(numbers=True), BY_ORDER, drawn=True),
    Corruption("words: synonyms and numbering", _made(words=True, numbers=True), BY_ORDER, drawn=True, simple=False),
    Corruption(
        "words: synonyms and numbering, sorted",
        _made(words=True, numbers=True, ordered=False),
        BY_ORDER,
        drawn=True,
        simple=False,
    ),
    Corruption("words: a quarter invented", _made(words=True, share=0.25), BY_ORDER, drawn=True, simple=False),
    Corruption("words: a quarter invented, sorted", _made(words=True, share=0.25, ordered=False), BY_ORDER, drawn=True),
    Corruption("words: two towers, named", _towers((("image", "img"), ("text", "txt")), expects_words=True), BY_ORDER),
    Corruption(
        "words: encoder and decoder", _towers((("encoder", "enc"), ("decoder", "dec")), expects_words=True), BY_ORDER
    ),
    Corruption(
        "words: two towers, unnamed",
        _towers((("left_tower", "z_tower"), ("right_tower", "a_tower")), expects_words=False),
        expects=Answer.WAIT,
    ),
    Corruption("words: names that tell nothing", _trap, expects=Answer.WAIT, drawn=True),
)
