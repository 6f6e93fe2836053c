"""A network that nobody knows, from names and shapes: claims that they determine, and what they leave open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from inspector.architectures.index import load_index
from inspector.architectures.structure.absences import absences
from inspector.architectures.structure.attention import attention, has_other_attention, is_attention
from inspector.architectures.structure.blocks import brief_text
from inspector.architectures.structure.chains import lines, repeats
from inspector.architectures.structure.concatenations import concatenations
from inspector.architectures.structure.encoder_decoder import encoder_decoder
from inspector.architectures.structure.ends import ends, flattened
from inspector.architectures.structure.fourier import transforms
from inspector.architectures.structure.joins import joins
from inspector.architectures.structure.kinds import kinds
from inspector.architectures.structure.layers import aliases, layers_of
from inspector.architectures.structure.left_out import left_out
from inspector.architectures.structure.marks import marks
from inspector.architectures.structure.nearest import nearest
from inspector.architectures.structure.own_matrices import own_matrices
from inspector.architectures.structure.parts import is_called_layer_norm, kinds_text, parts_of
from inspector.architectures.structure.residual_bodies import residual_body
from inspector.architectures.structure.stacks import stacks_of
from inspector.architectures.structure.stages import stages, stages_of
from inspector.architectures.structure.sums import sums
from inspector.architectures.structure.tables import with_tied
from inspector.architectures.structure.takes import further, recurrent, takes
from inspector.architectures.structure.twins import twins, twins_of
from inspector.architectures.structure.types import CONVOLUTIONS, Claim, Layer, LayerKind, Structure, Topic
from inspector.checkpoint.types import StateDict

_MOST_KINDS = 5
_MOST_STACKS = 3
_MOST_LINES = 6
_MOST_COPIES = 4


def describe_structure(state: StateDict, others: Sequence[StateDict] = ()) -> Structure:
    """Work: a few passes over the names. Nothing is read but names and shapes. others: further weights of the file."""
    ordered = state.ordered and not _is_sorted([t.name for t in state.tensors])
    layers = with_tied(layers_of(state.modules, aliases(state.tensors), ordered=ordered), state.tensors)
    stacks = stacks_of(state.modules, layers)
    pairs = twins_of(layers, stacks)
    staged = stages_of(layers, stacks)
    alike = nearest(state.tensors, load_index()) if ordered else None
    joined = tuple(joins(layers, stacks, ordered=ordered))
    told = " ".join(claim.says for claim in joined)
    concatenated = tuple(concatenations(layers, stacks, told, ordered=ordered))
    told = " ".join([told, *(claim.says for claim in concatenated)])
    summed = tuple(sums(layers, told, ordered=ordered))
    flat = tuple(flattened(layers))
    told = " ".join([told, *(claim.says for claim in (*summed, *flat))])
    claims = (
        *((alike,) if alike is not None else residual_body(layers)),
        *encoder_decoder(layers, stacks, staged, ordered=ordered),
        *kinds(layers, stacks, ordered=ordered),
        *transforms(layers),
        *takes(layers, ordered),
        *further(layers, told, ordered=ordered),
        *recurrent(layers, ordered=ordered),
        *repeats(layers, stacks, pairs),
        *stages(staged, stacks),
        *twins(pairs, stacks),
        *_copies(state, others),
        *lines(layers, stacks, pairs),
        *marks(state.tensors, layers),
        *own_matrices(layers),
        *joined,
        *concatenated,
        *summed,
        *attention(state.tensors, layers),
        *flat,
        *ends(layers, ordered),
        *absences(layers),
        *left_out(layers),
    )
    counts = f"{kinds_text(layers, _MOST_KINDS, norms=True)}."
    parts, more_parts = parts_of(state.modules, layers, stacks)
    return Structure(
        layers=layers,
        stacks=stacks,
        parts=parts,
        more_parts=more_parts,
        claims=claims,
        ordered=ordered,
        open=_open(layers, claims, ordered=ordered),
        says=_sentences(counts, claims),
        counts=counts,
        blocks=brief_text(stacks),
    )


def _copies(state: StateDict, others: Sequence[StateDict]) -> Iterator[Claim]:
    """Further networks of the same names and shapes in the file."""
    own = {tensor.name: tensor.shape for tensor in state.tensors}
    same = [one for one in others if one.path != state.path and {t.name: t.shape for t in one.tensors} == own]
    if same:
        names = ", ".join(".".join(one.path) or "the top" for one in same[:_MOST_COPIES])
        more = f" and {len(same) - _MOST_COPIES:,} more" if len(same) > _MOST_COPIES else ""
        yield Claim(
            topic=Topic.REPEATS,
            says=f"The file holds {len(same) + 1:,} networks of these names and shapes: beside "
            f"{'.'.join(state.path) or 'the top'} also {names}{more}.",
            evidence=f"{len(own):,} names and shapes in each",
            value=len(same) + 1,
        )


def _is_sorted(names: Sequence[str]) -> bool:
    """Whether another program put them in the order of the alphabet. Modules make a weight before its bias."""
    return any(name.endswith(".bias") for name in names) and all(a <= b for a, b in pairwise(names))


def _open(layers: Sequence[Layer], claims: Sequence[Claim], *, ordered: bool) -> tuple[str, ...]:
    found = ["in which order the parts are called, and what is added or joined between them", "activations and dropout"]
    own = {layer.kind for layer in layers}
    kernels = {len(layer.kernel) for layer in layers if layer.kind in CONVOLUTIONS and max(layer.kernel) > 1}
    if own & CONVOLUTIONS:
        found.append("strides, padding, dilation and pooling")
    if kernels and not any(claim.topic is Topic.POSITIONS for claim in claims):
        found.append("how large what it takes is (a picture, a board, a length)")
    if any(layer.is_square for layer in layers):
        found.append("whether a convolution as wide as it is deep is transposed")
    heads = sum(claim.topic is Topic.HEADS for claim in claims)
    if (is_attention(layers) or any(claim.topic is Topic.PROJECTIONS for claim in claims)) and not heads:
        found.append("how many heads the attention has")
    elif heads and has_other_attention(layers):
        found.append("how many heads the attention without such a table has")
    if any(layer.kind is LayerKind.NORM and not is_called_layer_norm(layer.path) for layer in layers):
        found.append("whether a norm without running statistics is a layer, group or instance norm")
    if not ordered:
        found.append("which layer comes first: the tensors are sorted by name")
    return tuple(found)


def _sentences(counts: str, claims: Sequence[Claim]) -> str:
    kept = [counts]
    for topic, most in (
        (Topic.NEAREST, 1),
        (Topic.KIND, 3),
        (Topic.TAKES, 2),
        (Topic.REPEATS, _MOST_STACKS),
        (Topic.LAYERS, _MOST_LINES),
        (Topic.ENDS_IN, 2),
    ):
        kept += [claim.says for claim in claims if claim.topic is topic][:most]
    return " ".join(kept)
