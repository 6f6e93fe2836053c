"""What stands beside a file against what its shapes say. The shapes win, and nothing else in it is believed."""

from __future__ import annotations

import json
from collections.abc import Mapping

from inspector.architectures.families.entry import Family, Settings
from inspector.findings import Finding, FindingKind, Severity

CONFIG_CONTRADICTS = FindingKind("config-contradicts", Severity.WARNING, "The config describes another model")
CONFIG_IMPOSSIBLE = FindingKind("config-impossible", Severity.WARNING, "A number of the config does not fit the shapes")

# Keys of transformers', diffusers' and timm's config.json -> the size that they state, as templates call it.
SIZES = {
    "hidden_size": "hidden",
    "n_embd": "hidden",
    "d_model": "hidden",
    "dim": "hidden",
    "num_hidden_layers": "layers",
    "n_layer": "layers",
    "n_layers": "layers",
    "num_layers": "layers",
    "encoder_layers": "layers",
    "decoder_layers": "decoder_layers",
    "num_decoder_layers": "decoder_layers",
    "vocab_size": "vocab",
    "intermediate_size": "mlp",
    "d_ff": "mlp",
    "hidden_dim": "mlp",
    "max_position_embeddings": "positions",
    "n_positions": "positions",
    "type_vocab_size": "types",
    "patch_size": "patch",
    "num_channels": "in_channels",
    "num_heads": "heads",
    "d_kv": "head_width",
    "num_local_experts": "experts",
}
BESIDE = " beside the file"
REMEDY = "Look whether the right config.json lies beside the file; what it should settle is assumed until then."
Stated = Mapping[str, tuple[str, str]]


def contradicted(settings: Settings, stated: Stated) -> tuple[tuple[str, str, int, int], ...]:
    """(key, where it stands, what it says, what the shapes say) of every size that is stated otherwise."""
    found = []
    for key, size in SIZES.items():
        own = settings.get(size)
        if key not in stated or type(own) is not int:
            continue
        text, where = stated[key]
        if not where.endswith(BESIDE):  # a training script's own "dim" may be anything
            continue
        said = _number(text)
        if said is not None and said != own:
            found.append((key, where, said, own))
    return tuple(found)


def believed(settings: Settings, stated: Stated) -> Stated:
    """What may settle an assumption: nothing from a place that is wrong about the sizes."""
    wrong = {where for _, where, _, _ in contradicted(settings, stated)}
    return {key: item for key, item in stated.items() if item[1] not in wrong}


def contradiction_findings(family: Family, settings: Settings, stated: Stated) -> tuple[Finding, ...]:
    """A warning per place that is wrong about a size, and per stated value that the sizes do not allow."""
    found: list[Finding] = []
    for where in dict.fromkeys(item[1] for item in contradicted(settings, stated)):
        said = [(key, n, own) for key, place, n, own in contradicted(settings, stated) if place == where]
        listed = ", ".join(f"{key} = {n:,} where the shapes say {own:,}" for key, n, own in said)
        found.append(
            CONFIG_CONTRADICTS.found(
                subjects=tuple(key for key, _, _ in said),
                says=f"Another model is described in {where}: {listed}. The shapes count; nothing else of it is used.",
                evidence=(("values", len(said)),),
                remedy=REMEDY,
            )
        )
    for one in family.assumes:
        for key in one.stated:
            text, where = believed(settings, stated).get(key, ("", ""))
            number = _number(text)
            if number is not None and one.fits is not None and not one.fits(settings, number):
                found.append(
                    CONFIG_IMPOSSIBLE.found(
                        subjects=(key,),
                        says=f"{key} = {number:,} in {where} does not fit these shapes, so it is not taken over.",
                        evidence=((key, number),),
                        remedy=REMEDY,
                    )
                )
    return tuple(found)


def _number(text: str) -> int | None:
    try:
        value = json.loads(text) if len(text) < 32 else None
    except (ValueError, RecursionError):
        return None
    return value if type(value) is int else None
