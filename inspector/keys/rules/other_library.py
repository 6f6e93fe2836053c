"""The same network under another library's names: torchvision's vision transformers, Swins, ConvNeXts, VGGs and
RegNets as timm calls them, fairseq's RoBERTas as transformers does, and back; T5X's T5s as transformers does, Keras
applications' ResNets as torchvision.

One table per family, read from either side. It speaks only where it speaks for the whole file: every weight is named in
the table's one spelling and every weight of the target in the other. What then differs (a head, a picture size, an
index buffer) is left to the other rules. That the answers are equal was measured with both libraries' own models.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from inspector.keys.placing.roles import is_counter
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost, RuleUse
from inspector.keys.rules.entry import Move, Phrase, Questions, Rule, Spelling

Rows = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How two libraries name one family. rows: in order; ^ is a name's beginning, $ its end, {i} a number.

    {j} is a number, too, from 0, and {j+1} the same where the other library counts from 1.

    Applied from the first library to the second from the first row to the last, the other way from the last to the
    first. anchors: beginnings of names that each of the two has. alone: names of either that the other has no
    counterpart of, which are other rules' matter. one_way: the second library's names are never read as the first's.
    """

    id: str
    rows: Rows
    anchors: tuple[str, str]
    libraries: tuple[str, str] = ("torchvision", "timm")
    alone: frozenset[str] = frozenset()
    one_way: bool = False


# What both call alike in every family.
_ALIKE = frozenset({"norm.weight", "norm.bias"})


def _stages(ours: str, theirs: str) -> Rows:
    return tuple((ours.format(block=2 * n + 1, i="{i}"), theirs.format(stage=n, i="{i}")) for n in range(4))


def _between(ours: str, theirs: str) -> Rows:
    return tuple((ours.format(layer=2 * n), theirs.format(stage=n)) for n in range(1, 4))


def _roberta(top: str) -> Dialect:
    """fairseq's, whose hub files have it as a decoder. Source: transformers convert_roberta_original_pytorch_checkpoint
    and fairseq models/roberta/model.py. What transformers has besides is a bias twice and an embedding of segments."""
    ours, layer, theirs = f"^{top}.sentence_encoder.", "^roberta.encoder.layer.{i}.", "^roberta.embeddings."
    return Dialect(
        id="RoBERTas",
        rows=(
            (f"{ours}embed_tokens.", f"{theirs}word_embeddings."),
            (f"{ours}embed_positions.", f"{theirs}position_embeddings."),
            (f"{ours}layernorm_embedding.", f"{theirs}LayerNorm."),
            (f"{ours}layers.{{i}}.", layer),
            *((f"{layer}self_attn.{n[0]}_proj.", f"{layer}attention.self.{n}.") for n in ("query", "key", "value")),
            (f"{layer}self_attn.out_proj.", f"{layer}attention.output.dense."),
            (f"{layer}self_attn_layer_norm.", f"{layer}attention.output.LayerNorm."),
            (f"{layer}fc1.", f"{layer}intermediate.dense."),
            (f"{layer}fc2.", f"{layer}output.dense."),
            (f"{layer}final_layer_norm.", f"{layer}output.LayerNorm."),
            (f"^{top}.lm_head.", "^lm_head."),
            ("^lm_head.weight$", "^lm_head.decoder.weight$"),
        ),
        anchors=(f"{top}.sentence_encoder.", "roberta.encoder.layer."),
        libraries=("fairseq", "transformers"),
        alone=frozenset(
            {"roberta.embeddings.token_type_embeddings.weight", "lm_head.decoder.weight", "lm_head.decoder.bias"}
            | {f"{top}.lm_head.weight"}
        ),
    )


def _t5() -> Dialect:
    """T5X's. Source: transformers convert_t5x_checkpoint_to_pytorch.py. Leaves keep their names here, too."""
    rows: list[tuple[str, str]] = []
    halves = (
        ("encoder", (("attention", "attention", "SelfAttention"),)),
        (
            "decoder",
            (("self", "self_attention", "SelfAttention"), ("cross", "encoder_decoder_attention", "EncDecAttention")),
        ),
    )
    for half, attentions in halves:
        layer, block = f"^{half}.layers_{{i}}.", f"^{half}.block.{{i}}.layer."
        for n, (short, ours, theirs) in enumerate(attentions):
            norm = short if short == "attention" else f"{short}_attention"
            rows += [
                (f"{layer}{ours}.", f"{block}{n}.{theirs}."),
                (f"{layer}pre_{norm}_layer_norm.", f"{block}{n}.layer_norm."),
            ]
        last = len(attentions)
        rows += [
            (f"{layer}mlp.", f"{block}{last}.DenseReluDense."),
            (f"{layer}pre_mlp_layer_norm.", f"{block}{last}.layer_norm."),
        ]
        bias = f"^{half}.block.0.layer.0.SelfAttention.relative_attention_bias.weight$"
        rows += [(f"^{half}.relpos_bias.rel_embedding$", bias), (f"^{half}.{half}_norm.", f"^{half}.final_layer_norm.")]
    names = (("query", "q"), ("key", "k"), ("value", "v"), ("out", "o"))
    return Dialect(
        id="T5s",
        rows=(
            ("/", "."),
            ("^target.", "^"),
            *rows,
            *((f"Attention.{ours}.", f"Attention.{theirs}.") for ours, theirs in names),
            ("^token_embedder.", "^shared."),
            ("^decoder.logits_dense.", "^lm_head."),
        ),
        anchors=("target", "encoder.block.0."),
        libraries=("T5X", "transformers"),
        alone=frozenset({"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}),
        one_way=True,
    )


DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        id="vision transformers",
        rows=(
            ("^class_token$", "^cls_token$"),
            ("^conv_proj.", "^patch_embed.proj."),
            ("^encoder.pos_embedding$", "^pos_embed$"),
            ("^encoder.layers.encoder_layer_{i}.", "^blocks.{i}."),
            (".ln_{i}.", ".norm{i}."),
            (".self_attention.in_proj_", ".attn.qkv."),
            (".self_attention.out_proj.", ".attn.proj."),
            (".mlp.0.", ".mlp.fc1."),
            (".mlp.3.", ".mlp.fc2."),
            ("^encoder.ln.", "^norm."),
            ("^heads.head.", "^head."),
        ),
        anchors=("encoder.layers.encoder_layer_", "blocks."),
    ),
    Dialect(
        id="Swin transformers",
        rows=(
            ("^features.0.0.", "^patch_embed.proj."),
            ("^features.0.2.", "^patch_embed.norm."),
            *_stages("^features.{block}.{i}.", "^layers.{stage}.blocks.{i}."),
            *_between("^features.{layer}.", "^layers.{stage}.downsample."),
            (".mlp.0.", ".mlp.fc1."),
            (".mlp.3.", ".mlp.fc2."),
            ("^head.", "^head.fc."),
        ),
        anchors=("features.1.0.attn.", "layers.0.blocks."),
    ),
    Dialect(
        id="ConvNeXts",
        rows=(
            ("^features.0.", "^stem."),
            *_stages("^features.{block}.{i}.", "^stages.{stage}.blocks.{i}."),
            *_between("^features.{layer}.", "^stages.{stage}.downsample."),
            (".block.0.", ".conv_dw."),
            (".block.2.", ".norm."),
            (".block.3.", ".mlp.fc1."),
            (".block.5.", ".mlp.fc2."),
            (".layer_scale$", ".gamma$"),
            ("^classifier.0.", "^head.norm."),
            ("^classifier.2.", "^head.fc."),
        ),
        anchors=("features.1.0.layer_scale", "stages.0.blocks."),
    ),
    Dialect(
        id="VGGs",
        rows=(
            ("^classifier.0.", "^pre_logits.fc1."),
            ("^classifier.3.", "^pre_logits.fc2."),
            ("^classifier.6.", "^head.fc."),
        ),
        anchors=("classifier.6.", "pre_logits.fc1."),
    ),
    # timm's own `checkpoint_filter_fn` of models/regnet.py says the same of one direction.
    Dialect(
        id="RegNets",
        rows=(
            ("^stem.0.", "^stem.conv."),
            ("^stem.1.", "^stem.bn."),
            ("^trunk_output.block{i}.block{i}-{j}.", "^s{i}.b{j+1}."),
            (".proj.0.", ".downsample.conv."),
            (".proj.1.", ".downsample.bn."),
            (".f.a.0.", ".conv1.conv."),
            (".f.a.1.", ".conv1.bn."),
            (".f.b.0.", ".conv2.conv."),
            (".f.b.1.", ".conv2.bn."),
            (".f.se.", ".se."),
            (".f.c.0.", ".conv3.conv."),
            (".f.c.1.", ".conv3.bn."),
            ("^fc.", "^head.fc."),
        ),
        anchors=("trunk_output.block1.", "s1.b1.conv1."),
    ),
    _roberta("encoder"),
    _roberta("decoder"),
    _t5(),
    # keras.applications.resnet, the first version: its convolutions have biases, and a block's first one the stride.
    # Leaves keep their names, which vouch for their layout.
    Dialect(
        id="ResNets",
        rows=(
            ("/", "."),
            (":0$", "$"),
            ("^conv1_conv.", "^conv1."),
            ("^conv1_bn.", "^bn1."),
            *((f"^conv{n + 1}_block{{j+1}}_", f"^layer{n}.{{j}}._") for n in range(1, 5)),
            ("._0_conv.", ".downsample.0."),
            ("._0_bn.", ".downsample.1."),
            ("._{i}_conv.", ".conv{i}."),
            ("._{i}_bn.", ".bn{i}."),
            ("^predictions.", "^fc."),
        ),
        anchors=("conv2_block1_1_conv", "layer1.0."),
        libraries=("Keras", "torchvision"),
        one_way=True,
    ),
)
# What a file's own leaves are compared as: kernel stays kernel for the rules about layouts.
_LEAVES = {"kernel": "weight", "scale": "weight", "embedding": "weight", "gamma": "weight", "beta": "bias"}
_LEAVES |= {"moving_mean": "running_mean", "moving_variance": "running_var"}


@dataclass(frozen=True, slots=True)
class Written:
    """One row, read in one direction. put: for re.sub. line: the same as Python."""

    pattern: str
    put: str | Callable[[re.Match[str]], str]
    line: str


def _pattern(text: str) -> str:
    start, end = "^" if text.startswith("^") else "", "$" if text.endswith("$") else ""
    body = re.escape(text.strip("^$")).replace(r"\{j\+1\}", "{j}").replace(r"\{j\}", "{j}")
    # The second of one letter is the same number.
    body = body.replace(r"\{i\}", "(?P<i>[0-9]+)", 1).replace(r"\{i\}", "(?P=i)")
    return start + body.replace("{j}", "(?P<j>[0-9]+)") + end


def _written(before: str, after: str) -> Written:
    put = after.strip("^$")
    if "{j" not in put:
        put = put.replace("{i}", r"\g<i>")
        return Written(_pattern(before), put, repr(put))
    up = ("{j+1}" in put) - ("{j+1}" in before)

    def counted(found: re.Match[str]) -> str:
        number = str(int(found["j"]) + up)
        made = put.replace("{i}", found["i"]) if "{i}" in put else put
        return made.replace("{j+1}", number).replace("{j}", number)

    number = "int(m['j']) + 1" if up > 0 else "int(m['j']) - 1"
    text = put.replace("{i}", "{m['i']}").replace("{j+1}", f"{{{number}}}").replace("{j}", f"{{{number}}}")
    return Written(_pattern(before), counted, f'lambda m: f"{text}"')


@cache
def _rows(number: int, to_timm: bool) -> tuple[Written, ...]:
    """In the order in which they are used."""
    rows = DIALECTS[number].rows
    if to_timm:
        return tuple(_written(a, b) for a, b in rows)
    return tuple(_written(b, a) for a, b in reversed(rows))


def translate(name: str, number: int, to_timm: bool) -> str:
    """A name of one library as the other writes it."""
    for row in _rows(number, to_timm):
        name = re.sub(row.pattern, row.put, name)
    return name


def spelled_out(side: Sequence[Leaf]) -> list[str] | None:
    """The names that timm has for a side whose names are all torchvision's of one family; None where they are not."""
    prefix = wrapper_of(side)
    names = [leaf.name.removeprefix(prefix) for leaf in side]
    ordered = sorted(names)
    for number, dialect in enumerate(DIALECTS):
        own, other = dialect.anchors
        if dialect.libraries[1] != "timm" or not _any_begins(ordered, own) or _any_begins(ordered, other):
            continue
        starts = tuple(row.pattern for row in _rows(number, True) if row.pattern.startswith("^"))
        told = all(any(re.match(start, name) for start in starts) or name in _ALIKE for name in names)
        made = [translate(name, number, True) for name in names]
        if told and len(set(made)) == len(made):
            return [prefix + name for name in made]
    return None


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    weights = [leaf for leaf in leaves if not is_counter(leaf)]
    theirs = {place.name: place for place in places if not is_counter(place)}
    wrapper = wrapper_of(weights)
    here, there = sorted(leaf.name for leaf in weights), sorted(theirs)
    for number, dialect in enumerate(DIALECTS):
        for to_timm in (True, *([] if dialect.one_way else [False])):
            own, other = dialect.anchors if to_timm else dialect.anchors[::-1]
            # What the library itself has before all its names is no wrapper.
            prefix = "" if own.startswith(wrapper) else wrapper
            if not _any_begins(here, prefix + own) or not _any_begins(there, other) or _any_begins(there, own):
                continue
            made = {}
            for leaf in leaves:
                own_name = leaf.name.removeprefix(prefix)
                made[leaf.name] = translate(own_name, number, to_timm)
                if own_name in dialect.alone and made[leaf.name] not in theirs:
                    made[leaf.name] = own_name
            if not _speaks_for_all(weights, made, theirs, dialect.alone):
                continue
            names = dialect.libraries if to_timm else dialect.libraries[::-1]
            move = Move(
                RULE.id,
                f"call the parts of {dialect.id} as {names[1]} does, not as {names[0]}",
                (("dialect", str(number)), ("to", names[1])),
            )
            for leaf in leaves:
                if made[leaf.name] != leaf.name.removeprefix(prefix):
                    yield Spelling(leaf, prefix + made[leaf.name], move)
            return


def _any_begins(ordered: Sequence[str], start: str) -> bool:
    """ordered: names, ascending: the first that is not before the start begins with it, or none does."""
    at = bisect_left(ordered, start)
    return at < len(ordered) and ordered[at].startswith(start)


def wrapper_of(weights: Sequence[Leaf]) -> str:
    """One segment before all names ("module."), "" without one; taking it off is another rule's."""
    first = {leaf.name.partition(".")[0] for leaf in weights}
    return f"{first.pop()}." if len(first) == 1 and all("." in leaf.name for leaf in weights) else ""


def _speaks_for_all(
    weights: Sequence[Leaf], made: dict[str, str], theirs: dict[str, Leaf], alone: frozenset[str]
) -> bool:
    """Whether every tensor gets a place of its own with as many dimensions, but for index buffers."""
    from inspector.keys.operations.computed import COMPUTED

    computed = {name for kind in COMPUTED.values() for name in kind.leaves} - {"bias"}
    names = [made[leaf.name] for leaf in weights if made[leaf.name].rpartition(".")[2] not in computed]
    there = {name for name in theirs if name.rpartition(".")[2] not in computed}
    here = {name if name in there else _with_torchs_leaf(name) for name in names}
    alone |= {made[name] for name in made.keys() & alone}
    return len(here) == len(names) and _with_one_bias(here) - alone == _with_one_bias(there) - alone


def _with_torchs_leaf(name: str) -> str:
    module, dot, leaf = name.rpartition(".")
    return f"{module}{dot}{_LEAVES.get(leaf, leaf)}"


def _with_one_bias(names: Iterable[str]) -> set[str]:
    """With the biases of query and value as one: Swin's second version has no other for the key, or zeros there."""
    return {re.sub(r"\.attn\.[qv]_bias$", ".attn.qkv.bias", name) for name in names}


def _phrases(use: RuleUse) -> tuple[Phrase, ...]:
    parameters = dict(use.parameters)
    number = int(parameters["dialect"])
    to_timm = parameters["to"] == DIALECTS[number].libraries[1]
    # Anywhere at a name's beginning, also behind the prefix that is dropped before.
    rows = "".join(f"\n        ({row.pattern!r}, {row.line})," for row in _rows(number, to_timm))
    line = f"for pattern, put in ({rows}\n    ):\n        key = re.sub(pattern, put, key)"
    return (Phrase(line, lambda key: translate(key, number, to_timm)),)


RULE = Rule(
    id="other-library",
    title="Another library's names",
    says=(
        "Calls the parts of vision transformers, Swins, ConvNeXts, VGGs and RegNets as timm does where they are called "
        "as in torchvision, or back, fairseq's RoBERTas as transformers does, or back, T5X's T5s so, and Keras "
        "applications' ResNets as torchvision does, where that gives every tensor of both sides a counterpart."
    ),
    cost=Cost.LOSSLESS,
    done="another library's names become the target's",
    spells=_spells,
    phrases=_phrases,
)
