"""What a LoRA adapter adds to which layer: pairs of small matrices and their scale, from names, shapes and config.

An adapter whose config or tensors say anything that is not known here is refused: what is left out of a merge is
silently missing from the model. Sources: PEFT 0.21, tuners/lora (layer.py, model.py, config.py); for lora_up and
lora_down kohya-ss/sd-scripts, networks/lora.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inspector.checkpoint.source import ByteSource, PathSource
from inspector.checkpoint.types import TensorInfo
from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.readers.folders.peft.reader import CONFIG
from inspector.readers.inside import look_inside
from inspector.readers.plain_json import parse_json
from inspector.side_files import PathKind, kind_of_path, read_bytes
from inspector.units import human_shape

_PREFIX = "base_model.model."
_LORA = re.compile(
    r"(?P<layer>.+)\.lora_(?:(?P<side>[AB])(?:\.(?P<adapter>(?!weight$|bias$)[\w-]+))?\.weight"
    r"|embedding_(?P<embedding>[AB])(?:\.(?P<named>[\w-]+))?)"
)
_KOHYA = re.compile(r"(?P<layer>[^.]+)\.(?:lora_(?P<side>down|up)\.weight|(?P<alpha>alpha))")
_SAVED = re.compile(r"\.modules_to_save(\.[\w-]+(?=\.))?(?=\.)")
_FOREIGN = re.compile(r"(^|\.)(lora_|hada_|lokr_|oft_|dora_|ia3_|boft_|vera_|base_layer\.|trainable_tokens)")
_PLAIN_PATTERN = re.compile(r"\^?[\w.-]+")
_CONFIG_NBYTES = 1_000_000
_MOST_VALUES = 50_000
# Of compressed files in each other.
_MOST_LEVELS = 4

# What the config may say without changing what is added; anything else must be off.
_HARMLESS = frozenset(
    {
        "peft_type",
        "task_type",
        "base_model_name_or_path",
        "revision",
        "inference_mode",
        "lora_dropout",
        "target_modules",
        "exclude_modules",
        "layers_to_transform",
        "layers_pattern",
        "auto_mapping",
        "peft_version",
        "megatron_core",
        "qalora_group_size",
        "runtime_config",
        "r",
        "lora_alpha",
        "rank_pattern",
        "alpha_pattern",
        "use_rslora",
        "fan_in_fan_out",
        "bias",
        "modules_to_save",
        "init_lora_weights",
        "eva_config",
    }
)
# Beginnings that leave the base model as it was. Others (pissa, olora, loftq, corda) change it before training.
_BEGINNINGS = (True, False, "gaussian", "eva", "orthogonal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What is added to one layer's weight: scale * up @ down.

    layer: as the adapter names it. down: (rank, in, *kernel). up: (out, rank, 1, ...). embedding: down is (rank,
    entries), up (width, rank), and the product is laid out the other way round.
    """

    layer: str
    down: TensorInfo
    up: TensorInfo
    scale: float
    embedding: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """whole: tensors that take the place of the base's, by its names. new: layers that the base need not have.

    flat: layers are named with "_" for "." and a prefix (kohya). turned: the config's word on how matrices lie.
    base: what the config says that it is for, "" when it does not.
    """

    pairs: tuple[Pair, ...]
    whole: tuple[tuple[str, TensorInfo], ...] = ()
    new: tuple[str, ...] = ()
    flat: bool = False
    turned: bool = False
    base: str = ""


@dataclass(slots=True)
class _Found:
    sides: dict[str, TensorInfo] = field(default_factory=dict)
    alpha: TensorInfo | None = None
    embedding: bool = False


def read_adapter_config(path: Path) -> dict[str, object]:
    """adapter_config.json in or beside what was opened, {} where there is none. An archive of a folder counts as it.

    Raises ExportError for a broken one, ReadError for one that cannot be read.
    """
    kind = kind_of_path(path)
    place = (path if kind is PathKind.FOLDER else path.parent) / CONFIG
    if kind is PathKind.FILE:
        inside = config_inside(path)
        if inside:
            return inside
    if kind_of_path(place) is PathKind.NOTHING:
        return {}
    return parse_adapter_config(read_bytes(place, most_nbytes=_CONFIG_NBYTES))


def config_inside(path: Path, name: str = "") -> dict[str, object]:
    """adapter_config.json in an archive of an adapter's folder, {} for any other file. name: for people.

    Raises as `read_adapter_config`.
    """
    source = PathSource(path, name)
    try:
        return _config_in(source, DEFAULT_LIMITS)
    finally:
        source.close()


def _config_in(source: ByteSource, limits: Limits) -> dict[str, object]:
    inside = look_inside(source, limits, at_end=False)
    for _ in range(_MOST_LEVELS):
        if inside is None or inside.stream is None:
            break
        inside = look_inside(inside.stream, limits, at_end=False)
    name = f"{inside.root}{CONFIG}" if inside is not None else ""
    if inside is None or name not in inside.names:
        return {}
    member = inside.open(name)
    try:
        return parse_adapter_config(member.read(0, min(member.size, _CONFIG_NBYTES + 1)))
    finally:
        inside.close(name)


def config_of_alpha(tensors: Sequence[TensorInfo], alpha: float) -> dict[str, object]:
    """What a config of plain LoRA would say: the ranks by the tensors' shapes, the scale alpha / rank throughout.

    Raises ExportError where no matrix tells a rank.
    """
    ranks: dict[str, int] = {}
    for tensor in tensors:
        match = _LORA.fullmatch(tensor.name.removeprefix(_PREFIX))
        if match is not None and (match["side"] or match["embedding"]) == "A" and len(tensor.shape) >= 2:
            ranks[match["layer"]] = tensor.shape[0]
    if not ranks:
        raise ExportError("The adapter holds no pair of lora_A and lora_B, so there is nothing to merge.")
    first = next(iter(ranks.values()))
    return {
        "peft_type": "LORA",
        "r": first,
        "lora_alpha": alpha,
        "rank_pattern": {f"^{layer}": rank for layer, rank in ranks.items() if rank != first},
    }


def has_own_scale(tensors: Sequence[TensorInfo]) -> bool:
    """Whether the file alone tells its scales, as kohya's scripts write them, so that no config is needed."""
    return any(_KOHYA.fullmatch(tensor.name) for tensor in tensors)


def parse_adapter_config(raw: bytes) -> dict[str, object]:
    """The text of an adapter_config.json. Raises ExportError for what is no JSON object, or too long."""
    if len(raw) > _CONFIG_NBYTES:
        raise ExportError(f"{CONFIG} has {len(raw):,} bytes.")
    value, _ = parse_json(raw, CONFIG, most_values=_MOST_VALUES)
    if not isinstance(value, dict):
        raise ExportError(f"{CONFIG} is no JSON object.")
    return value


def understand(
    tensors: Sequence[TensorInfo], config: Mapping[str, object], alphas: Mapping[str, float] | None = None
) -> Adapter:
    """The adapter. alphas: the values of its `alpha` tensors by name, for files without a config.

    Raises ExportError, naming the setting or the tensor, for anything that is not plain LoRA.
    """
    found: dict[str, _Found] = {}
    whole: list[tuple[str, TensorInfo]] = []
    names: set[str] = set()
    flat = has_own_scale(tensors)
    for tensor in tensors:
        if flat:
            _take_flat(tensor, found)
            continue
        name = tensor.name.removeprefix(_PREFIX)
        match = _LORA.fullmatch(name)
        if match is not None:
            place = found.setdefault(match["layer"], _Found(embedding=match["embedding"] is not None))
            side = "down" if (match["side"] or match["embedding"]) == "A" else "up"
            names.add(match["adapter"] or match["named"] or "")
            if side in place.sides or place.embedding is not (match["embedding"] is not None):
                raise ExportError(f"{match['layer']} is adapted twice in this file.", hint="Save one adapter alone.")
            place.sides[side] = tensor
        elif config.get("bias") in ("all", "lora_only") and name.endswith(".base_layer.bias"):
            # Trained with the adapter: the layer's own bias, which the adapter's wrapper holds.
            whole.append((name.replace(".base_layer.", "."), tensor))
        elif _FOREIGN.search(name):
            raise ExportError(f"{tensor.name[:200]} is no part of plain LoRA, and what it does is not merged here.")
        else:
            whole.append((_SAVED.sub("", name), tensor))
    if len(names) > 1:
        raise ExportError(f"The file holds several adapters: {', '.join(sorted(names))[:200]}.")
    if not found:
        raise ExportError("The adapter holds no pair of lora_A and lora_B, so there is nothing to merge.")
    if not flat:
        _check_config(config)
    if len({name for name, _ in whole}) < len(whole):
        raise ExportError("The adapter holds a layer of the base model twice.")
    saved = _texts(config.get("modules_to_save"))
    pairs = tuple(_pair(layer, place, config, alphas or {}, flat=flat) for layer, place in found.items())
    new = tuple(name for name, _ in whole if saved & set(name.split(".")))
    base = config.get("base_model_name_or_path")
    return Adapter(
        pairs=pairs,
        whole=tuple(whole),
        new=new,
        flat=flat,
        turned=config.get("fan_in_fan_out") is True,
        base=base[:200] if isinstance(base, str) else "",
    )


def _take_flat(tensor: TensorInfo, found: dict[str, _Found]) -> None:
    match = _KOHYA.fullmatch(tensor.name)
    if match is None:
        raise ExportError(f"{tensor.name[:200]} is no part of plain LoRA, and what it does is not merged here.")
    place = found.setdefault(match["layer"], _Found())
    if match["alpha"]:
        place.alpha = tensor
    else:
        place.sides[match["side"]] = tensor


def _check_config(config: Mapping[str, object]) -> None:
    if not config:
        raise ExportError(
            f"There is no {CONFIG} in or beside the adapter, and the scale is only there.",
            hint="Get it from where the adapter came from.",
        )
    if config.get("peft_type") != "LORA":
        raise ExportError(f"The adapter is of type {str(config.get('peft_type'))[:40]}; only LORA is merged.")
    for key, value in config.items():
        if key not in _HARMLESS and value not in (None, False, "", "none", 0) and value != {} and value != []:
            raise ExportError(
                f"{CONFIG} says {key[:60]} = {str(value)[:60]}, and what that changes is not merged here.",
                hint="Merge it with PEFT itself.",
            )
    beginning = config.get("init_lora_weights", True)
    if not any(beginning is known or (isinstance(known, str) and beginning == known) for known in _BEGINNINGS):
        raise ExportError(
            f"The adapter began with init_lora_weights = {str(beginning)[:40]}, which changed the base model first.",
            hint="Merge it with PEFT itself, which changes the base in the same way.",
        )


def _pair(layer: str, place: _Found, config: Mapping[str, object], alphas: Mapping[str, float], *, flat: bool) -> Pair:
    if len(place.sides) < 2:
        have = next(iter(place.sides.values())).name if place.sides else layer
        raise ExportError(f"{have[:200]} has no other half: {layer[:120]} cannot be merged.")
    down, up = place.sides["down"], place.sides["up"]
    if len(down.shape) < 2 or len(up.shape) != len(down.shape) or up.shape[1] != down.shape[0] or not down.shape[0]:
        shapes = f"{human_shape(down.shape)} and {human_shape(up.shape)}"
        raise ExportError(f"{layer[:120]}: {shapes} are no pair of LoRA matrices.")
    rank = down.shape[0]
    if flat:
        # Without an alpha, it is the rank.
        alpha = float(rank) if place.alpha is None else alphas[place.alpha.name]
        scale = alpha / rank
    else:
        told = _by_pattern(config, "rank_pattern", layer, config.get("r"))
        if told != rank:
            raise ExportError(f"{layer[:120]} has rank {rank}, and {CONFIG} says {str(told)[:40]}.")
        alpha = _number(_by_pattern(config, "alpha_pattern", layer, config.get("lora_alpha")))
        scale = alpha / (math.sqrt(rank) if config.get("use_rslora") is True else rank)
    if not math.isfinite(scale):
        raise ExportError(f"{layer[:120]} has the scale {scale}.")
    return Pair(layer=layer, down=down, up=up, scale=scale, embedding=place.embedding)


def _by_pattern(config: Mapping[str, object], which: str, layer: str, otherwise: object) -> object:
    """The value of the first pattern that ends the layer's name, as PEFT takes it (utils/other.py, get_pattern_key)."""
    patterns = config.get(which) or {}
    if not isinstance(patterns, dict):
        raise ExportError(f"{which} in {CONFIG} is no mapping.")
    for key, value in patterns.items():
        # Theirs are regular expressions; only those that are plain names are followed.
        if not isinstance(key, str) or not _PLAIN_PATTERN.fullmatch(key):
            raise ExportError(f"{which} in {CONFIG} has the pattern {str(key)[:60]}, which is no plain name.")
        bare = key.removeprefix("^")
        if layer == bare or (bare == key and layer.endswith(f".{bare}")):
            return value
    return otherwise


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ExportError(f"lora_alpha in {CONFIG} is {str(value)[:40]}, which is no number.")
    return float(value)


def _texts(value: object) -> set[str]:
    return {each for each in value if isinstance(each, str)} if isinstance(value, list) else set()
