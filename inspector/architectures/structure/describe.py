"""A network that nobody knows, from names and shapes: claims that they determine, and what they leave open."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from inspector.architectures.index import load_index
from inspector.architectures.structure.attention import attention, is_attention
from inspector.architectures.structure.ends import ends, flattened, recurrent, takes
from inspector.architectures.structure.layers import aliases, layers_of
from inspector.architectures.structure.nearest import nearest
from inspector.architectures.structure.parts import kinds_text, parts_of
from inspector.architectures.structure.stacks import stacks_of
from inspector.architectures.structure.types import CONVOLUTIONS, Claim, Layer, LayerKind, Stack, Structure, Topic
from inspector.checkpoint.types import StateDict

_MOST_KINDS = 5
_MOST_STACKS = 3
_MOST_LAYERS = 6


def describe_structure(state: StateDict) -> Structure:
    """Work: a few passes over the names. Nothing is read but names and shapes."""
    ordered = state.ordered and not _is_sorted([t.name for t in state.tensors])
    layers = layers_of(state.modules, aliases(state.tensors), ordered=ordered)
    stacks = stacks_of(state.modules, layers)
    alike = nearest(state.tensors, load_index()) if ordered else None
    claims = (
        *takes(layers, ordered),
        *recurrent(layers),
        *(_repeats(stack) for stack in stacks),
        *attention(state.tensors, layers),
        *flattened(layers),
        *ends(layers, ordered),
        *((alike,) if alike is not None else ()),
    )
    counts = f"{kinds_text(layers, _MOST_KINDS, norms=True)}."
    return Structure(
        layers=layers,
        stacks=stacks,
        parts=parts_of(state.modules, layers, stacks),
        claims=claims,
        ordered=ordered,
        open=_open(layers, claims, ordered=ordered),
        says=_sentences(counts, claims),
        counts=counts,
    )


def _is_sorted(names: Sequence[str]) -> bool:
    """Whether another program put them in the order of the alphabet. Modules make a weight before its bias."""
    return any(name.endswith(".bias") for name in names) and all(a <= b for a, b in pairwise(names))


def _repeats(stack: Stack) -> Claim:
    where = f"{stack.path}{stack.first} to {stack.path}{stack.first + stack.count - 1}"
    if stack.equal:
        says = f"{where} are {stack.count:,} equal blocks: {_build_text(stack.layers)}."
    else:
        widths = f", {_widths(stack.widths)}" if len(set(stack.widths)) > 1 else ""
        says = f"{where} are {stack.count:,} blocks of one build{widths}: {_build_text(stack.layers)}."
    evidence = "the same tensors in the same modules, " + ("all shapes equal" if stack.equal else "other shapes")
    return Claim(topic=Topic.REPEATS, says=says, evidence=evidence, value=stack.count, path=stack.path)


def _widths(widths: Sequence[int]) -> str:
    """Neighbours that are equal are said once."""
    kept = [width for n, width in enumerate(widths) if n == 0 or widths[n - 1] != width]
    shown = kept if len(kept) <= _MOST_LAYERS else [*kept[: _MOST_LAYERS // 2], *kept[-_MOST_LAYERS // 2 :]]
    gap = len(kept) > len(shown)
    half = _MOST_LAYERS // 2
    text = [f"{width:,}" for width in shown]
    return "widths " + (", ".join(text[:half]) + " ... " + ", ".join(text[half:]) if gap else ", ".join(text))


def _build_text(layers: Sequence[Layer]) -> str:
    shown = [_short(layer) for layer in layers[:_MOST_LAYERS]]
    more = f" and {len(layers) - _MOST_LAYERS:,} more" if len(layers) > _MOST_LAYERS else ""
    return ", ".join(shown) + more


def _short(layer: Layer) -> str:
    return f"{layer.size} {layer.kind.value}".strip()


def _open(layers: Sequence[Layer], claims: Sequence[Claim], *, ordered: bool) -> tuple[str, ...]:
    found = ["in which order the parts are called, and what is added or joined between them", "activations and dropout"]
    kinds = {layer.kind for layer in layers}
    if kinds & CONVOLUTIONS:
        found.append("strides, padding, dilation and pooling")
    if any(layer.kind in CONVOLUTIONS and layer.inputs == layer.outputs for layer in layers):
        found.append("whether a convolution as wide as it is deep is transposed")
    if is_attention(layers) and all(claim.topic is not Topic.HEADS for claim in claims):
        found.append("how many heads the attention has")
    if LayerKind.NORM in kinds:
        found.append("whether a norm without running statistics is a layer, group or instance norm")
    if not ordered:
        found.append("which layer comes first: the tensors are sorted by name")
    return tuple(found)


def _sentences(counts: str, claims: Sequence[Claim]) -> str:
    kept = [counts]
    for topic, most in ((Topic.NEAREST, 1), (Topic.TAKES, 2), (Topic.REPEATS, _MOST_STACKS), (Topic.ENDS_IN, 1)):
        kept += [claim.says for claim in claims if claim.topic is topic][:most]
    return " ".join(kept)
