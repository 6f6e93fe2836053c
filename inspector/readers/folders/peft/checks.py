"""What an adapter is and what is wrong with it, from its config and the names and shapes of its tensors.

Names as PEFT saves them: "base_model.model.<layer>.lora_A.weight" is (rank, in) and lora_B (out, rank); for embeddings
"lora_embedding_A" is (rank, entries) and "lora_embedding_B" (size, rank).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.findings import Finding, FindingKind, Severity
from inspector.units import counted, human_shape

ADAPTER_EMPTY = FindingKind("adapter-empty", Severity.ERROR, "Tensors of the adapter hold no numbers")
ADAPTER_HALF = FindingKind("adapter-half", Severity.ERROR, "Only one half of a lora_A and lora_B pair")
ADAPTER_RANK = FindingKind("adapter-rank", Severity.ERROR, "Ranks of the adapter do not fit")
ADAPTER_BASE_LAYERS = FindingKind(
    "adapter-base-layers", Severity.WARNING, "Tensors beside the adapter's own", also=(Severity.INFO,)
)
ADAPTER_NAMES = FindingKind("adapter-names", Severity.WARNING, "Names that save_pretrained does not write")
ADAPTER_WITHOUT_LORA = FindingKind("adapter-without-lora", Severity.ERROR, "A LoRA config without LoRA tensors")

_LISTED = 20
_PREFIX = "base_model.model."
_LORA = re.compile(
    r"(?P<layer>.*)\.lora_(?P<embedding>embedding_)?(?P<side>[AB])(?:\.(?P<adapter>[\w-]+))??(?:\.weight)?"
)
_ADAPTER = re.compile(
    # The `prefix` of each tuner of PEFT 0.21, and what prompts and earlier releases wrote.
    r"(^|\.)(adamss_|beft_|boft_|bone_|c3a_|deft_|delora_|fourierft_|frod_|glora_|gralora_|hada_|hira_|hra_|ia3_|lily_|"
    r"ln_tuning_|lokr_|lora_|miss_|oft_|osf_|peanut_|poly_|psoft_|pvera_|randlora_|road_|shadow_|shira_|supertuning_|"
    r"tinylora_|trainable_tokens|unilora_|vblora_|vector_bank|vera_|waveft_|prompt_embeddings|prompt_encoder|adaption_|"
    r"modules_to_save|ranknum)"
)
# Layers that save_pretrained writes whole, as "embed_tokens.base_layer.weight", when the adapter changes them.
# Source: peft/utils/constants.py, EMBEDDING_LAYER_NAMES; get_peft_model_state_dict, save_embedding_layers.
_EMBEDDINGS = re.compile(r".*\.(embed_tokens|lm_head)\.(base_layer\.)?(weight|bias)")
_SIDES = ("A", "B")


@dataclass(slots=True)
class _Pair:
    """One layer's two matrices; side -> tensor."""

    sides: dict[str, TensorInfo]


def adapter_facts(checkpoint: Checkpoint, config: Mapping[str, object]) -> list[tuple[str, str]]:
    """(what, text): type, rank and alpha, target modules, base model, as the config says, else as the shapes do."""
    ranks = sorted({rank for pair in _pairs(checkpoint).values() if (rank := _rank(pair)) is not None})
    kind = config.get("peft_type")
    facts = [("adapter type", str(kind)[:40] if isinstance(kind, str) else "LORA" if ranks else "unknown")]
    if ranks:
        facts.append(("adapter rank", ", ".join(map(str, ranks[:8]))))
    elif type(config.get("r")) is int:
        facts.append(("adapter rank", str(config["r"])))
    for key, label in (
        ("lora_alpha", "adapter alpha"),
        ("target_modules", "adapter target modules"),
        ("modules_to_save", "adapter modules saved whole"),
        ("base_model_name_or_path", "adapter base model"),
        ("task_type", "adapter task"),
    ):
        value = config.get(key)
        if value is not None:
            facts.append((label, (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:1000]))
    return facts


def observe_adapter(checkpoint: Checkpoint, config: Mapping[str, object]) -> list[Finding]:
    """Findings: empty, halves missing, ranks unlike the config, base layers saved too, names PEFT does not load."""
    state = checkpoint.weights
    tensors = state.tensors if state is not None else ()
    empty = _empty(tensors)
    if empty is not None:
        return [empty]
    pairs = _pairs(checkpoint)
    found = [
        _halves(pairs),
        _ranks(pairs, config),
        _base_layers(tensors, config),
        _names(tensors),
        _absent(pairs, config),
    ]
    return [finding for finding in found if finding is not None]


def _pairs(checkpoint: Checkpoint) -> dict[str, _Pair]:
    state = checkpoint.weights
    found: dict[str, _Pair] = {}
    for tensor in state.tensors if state is not None else ():
        match = _LORA.fullmatch(tensor.name) if "lora_" in tensor.name and len(tensor.name) < 1000 else None
        if match is not None:
            key = f"{match['layer']}{' (embedding)' if match['embedding'] else ''}{match['adapter'] or ''}"
            found.setdefault(key, _Pair({})).sides[match["side"]] = tensor
    return found


def _rank(pair: _Pair) -> int | None:
    """Rows of A, or columns of B where A is missing; None for shapes that are none of a LoRA."""
    for side, axis in (("A", 0), ("B", 1)):
        tensor = pair.sides.get(side)
        if tensor is not None and len(tensor.shape) >= 2:
            return tensor.shape[axis]
    return None


def _empty(tensors: Sequence[TensorInfo]) -> Finding | None:
    without = [t for t in tensors if t.numel == 0]
    if tensors and len(without) < len(tensors):
        return None
    what = f"Its {counted(len(tensors), 'tensor')} have no elements" if tensors else "The adapter file holds no tensor"
    return ADAPTER_EMPTY.found(
        f"{what}: it was saved after the weights had been taken out, or from a process that did not hold them.",
        subjects=tuple(t.name for t in without[:_LISTED]),
        evidence=(("tensors", len(tensors)),),
        remedy="Save it again with save_pretrained on the PEFT model, under ZeRO-3 after gathering the parameters.",
    )


def _halves(pairs: Mapping[str, _Pair]) -> Finding | None:
    alone = [(layer, next(iter(pair.sides))) for layer, pair in pairs.items() if len(pair.sides) == 1]
    if not alone:
        return None
    layer, side = alone[0]
    other = _SIDES[side == "A"]
    return ADAPTER_HALF.found(
        f"{counted(len(alone), 'layer')} of {len(pairs):,} have only one of lora_A and lora_B: "
        f"{layer[:120]} has no lora_{other}.",
        subjects=tuple(layer[:200] for layer, _ in alone[:_LISTED]),
        evidence=(("layers", len(alone)), ("of", len(pairs))),
        remedy="The missing half would start anew, which undoes that layer's training. Get the file again.",
    )


def _ranks(pairs: Mapping[str, _Pair], config: Mapping[str, object]) -> Finding | None:
    """Ranks within a pair, and against "r" and "rank_pattern"."""
    told = config.get("r")
    pattern = config.get("rank_pattern")
    special = {k: v for k, v in pattern.items() if type(v) is int} if isinstance(pattern, dict) else {}
    is_lora = config.get("peft_type", "LORA") == "LORA"
    wrong: list[tuple[str, str]] = []
    for layer, pair in pairs.items():
        a, b = pair.sides.get("A"), pair.sides.get("B")
        if a is not None and b is not None and len(a.shape) >= 2 and len(b.shape) >= 2 and a.shape[0] != b.shape[1]:
            wrong.append((layer, f"lora_A is {human_shape(a.shape)}, lora_B {human_shape(b.shape)}"))
            continue
        rank = _rank(pair)
        if not is_lora or type(told) is not int or rank is None:
            continue
        allowed = {told} if not special else {told, *special.values()}
        if rank not in allowed:
            wrong.append((layer, f"rank {rank}, the config says {', '.join(map(str, sorted(allowed)[:6]))}"))
    if not wrong:
        return None
    return ADAPTER_RANK.found(
        f"{counted(len(wrong), 'layer')} of {len(pairs):,} have a rank that does not fit: "
        f"{wrong[0][0][:120]}: {wrong[0][1]}.",
        subjects=tuple(layer[:200] for layer, _ in wrong[:_LISTED]),
        evidence=(("layers", len(wrong)), ("of", len(pairs))),
        remedy="The config belongs to another adapter, or the file was cut down; loading reports a size mismatch.",
    )


def _base_layers(tensors: Sequence[TensorInfo], config: Mapping[str, object]) -> Finding | None:
    saved = config.get("modules_to_save")
    whole = {name for name in saved if isinstance(name, str)} if isinstance(saved, list) else set()
    base = [t for t in tensors if not _ADAPTER.search(t.name) and not whole & set(t.name.split("."))]
    if config.get("bias", "none") != "none":
        base = [t for t in base if not t.name.endswith(".bias")]  # Trained with the adapter and saved with it.
    if not base:
        return None
    nbytes = sum(t.nbytes for t in base)
    every = len(base) == len(tensors)
    embeddings = all(_EMBEDDINGS.fullmatch(t.name) for t in base)
    return ADAPTER_BASE_LAYERS.found(
        f"{counted(len(base), 'tensor')} of {len(tensors):,} ({nbytes:,} bytes) "
        f"{'is' if len(base) == 1 else 'are'} no part of an adapter: {base[0].name[:120]}. "
        + (
            "The file is a whole model, perhaps with the adapter merged into it."
            if every
            else "Layers of the base model were saved with it."
        ),
        severity=Severity.INFO if embeddings and not every else Severity.WARNING,
        subjects=tuple(t.name for t in base[:_LISTED]),
        evidence=(("tensors", len(base)), ("nbytes", nbytes)),
        remedy="Load it as a model, without PEFT."
        if every
        else "Resized embeddings are saved on purpose; anything else only makes the file larger.",
    )


def _names(tensors: Sequence[TensorInfo]) -> Finding | None:
    """Names as model.state_dict() has them, with the adapter's own name in them; PEFT puts that in when it loads."""
    named = [t for t in tensors if re.search(r"\.lora_(embedding_)?[AB]\.[\w-]+\.weight$|\.base_layer\.", t.name)]
    named = [t for t in named if not _EMBEDDINGS.fullmatch(t.name)]
    bare = [t for t in tensors if _ADAPTER.search(t.name) and not t.name.startswith(_PREFIX)]
    bare = [t for t in bare if re.search(r"(^|\.)lora_", t.name)]
    if not named and not bare:
        return None
    first = (named or bare)[0].name
    what = (
        f"{counted(len(named), 'name')} as the running model has them, such as {first[:120]}"
        if named
        else f'{counted(len(bare), "name")} without "{_PREFIX}" in front, such as {first[:120]}'
    )
    return ADAPTER_NAMES.found(
        f"The file has {what}: it was not written by save_pretrained, and PEFT's loader may find none of them.",
        subjects=tuple(t.name for t in (named or bare)[:_LISTED]),
        evidence=(("tensors", len(named or bare)),),
        remedy="Save it with save_pretrained, or rename the keys.",
    )


def _absent(pairs: Mapping[str, _Pair], config: Mapping[str, object]) -> Finding | None:
    if pairs or config.get("peft_type") != "LORA":
        return None
    return ADAPTER_WITHOUT_LORA.found(
        "The config says LORA, but no tensor in the file is a lora_A or lora_B: 0 layers are adapted.",
        evidence=(("layers", 0),),
        remedy="It was merged into the base model, or another file was saved under this name.",
    )
