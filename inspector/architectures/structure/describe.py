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
from inspector.architectures.structure.gates import gates
from inspector.architectures.structure.joins import joins
from inspector.architectures.structure.kinds import kinds
from inspector.architectures.structure.kinds_by_names import kinds_by_names
from inspector.architectures.structure.layers import aliases, layers_of
from inspector.architectures.structure.left_out import left_out
from inspector.architectures.structure.marks import marks
from inspector.architectures.structure.multiples import multiples
from inspector.architectures.structure.natural_order import in_natural_order
from inspector.architectures.structure.nearest import nearest
from inspector.architectures.structure.other_axis import other_axis
from inspector.architectures.structure.own_matrices import own_matrices
from inspector.architectures.structure.parts import is_called_layer_norm, kinds_text, parts_of
from inspector.architectures.structure.questions import Question
from inspector.architectures.structure.residual_bodies import residual_body
from inspector.architectures.structure.stacks import stacks_of
from inspector.architectures.structure.stages import stages, stages_of
from inspector.architectures.structure.sums import sums
from inspector.architectures.structure.tables import with_tied, with_tokens
from inspector.architectures.structure.takes import further, recurrent, takes
from inspector.architectures.structure.twins import twins, twins_of
from inspector.architectures.structure.types import CONVOLUTIONS, Claim, Layer, LayerKind, Structure, Topic
from inspector.architectures.structure.words import dense_modules, rows_in_words, rows_of
from inspector.checkpoint.types import StateDict

_MOST_KINDS = 5
_MOST_STACKS = 3
_MOST_LINES = 6
_MOST_COPIES = 4


def describe_structure(state: StateDict, others: Sequence[StateDict] = ()) -> Structure:
    """Work: a few passes over the names. Nothing is read but names and shapes. others: further weights of the file."""
    ordered = state.ordered and not _is_sorted([t.name for t in state.tensors])
    # Sorted names say nothing of which comes first; the numbers in them do.
    tree = state.modules if ordered else in_natural_order(state.modules)
    layers = with_tied(layers_of(tree, aliases(state.tensors), ordered=ordered), state.tensors)
    layers = with_tokens(layers)
    stacks = stacks_of(tree, layers)
    pairs = twins_of(layers, stacks)
    staged = stages_of(layers, stacks)
    alike = nearest(state.tensors, load_index()) if ordered else None
    joined = tuple(joins(layers, stacks, ordered=ordered))
    told = " ".join(claim.says for claim in joined)
    concatenated = tuple(concatenations(layers, stacks, told, ordered=ordered))
    told = " ".join([told, *(claim.says for claim in concatenated)])
    summed = tuple(sums(layers, told, ordered=ordered))
    flat = tuple(flattened(layers))
    in_words = rows_of(layers)
    coded = tuple(encoder_decoder(layers, stacks, staged, ordered=ordered))
    told = " ".join([told, *(claim.says for claim in (*summed, *flat))])
    claims = (
        *((alike,) if alike is not None else residual_body(layers)),
        *coded,
        *kinds(layers, stacks, ordered=ordered),
        *kinds_by_names(layers, stacks, coded=bool(coded)),
        *transforms(layers),
        *takes(layers, ordered),
        *other_axis(layers),
        *further(layers, told, ordered=ordered),
        *recurrent(layers, ordered=ordered),
        *repeats(layers, stacks, pairs),
        *stages(staged, stacks),
        *rows_in_words(in_words),
        *twins(pairs, stacks),
        *_copies(state, others),
        *lines(layers, stacks, pairs),
        *marks(state.tensors, layers),
        *own_matrices(layers),
        *joined,
        *concatenated,
        *gates(layers, stacks, ordered=ordered),
        *dense_modules(in_words, layers),
        *multiples(layers, ordered=ordered),
        *summed,
        *attention(state.tensors, layers),
        *flat,
        *ends(layers, ordered),
        *absences(layers),
        *left_out(layers),
    )
    counts = f"{kinds_text(layers, _MOST_KINDS, norms=True)}."
    parts, more_parts = parts_of(tree, layers, stacks)
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


def _open(layers: Sequence[Layer], claims: Sequence[Claim], *, ordered: bool) -> tuple[Question, ...]:
    found = [Question.ORDER_OF_CALLS, Question.ACTIVATIONS]
    own = {layer.kind for layer in layers}
    kernels = {len(layer.kernel) for layer in layers if layer.kind in CONVOLUTIONS and max(layer.kernel) > 1}
    if own & CONVOLUTIONS:
        found.append(Question.STRIDES)
    if kernels and not any(claim.topic is Topic.POSITIONS for claim in claims):
        found.append(Question.SIZE)
    if any(layer.is_square for layer in layers):
        found.append(Question.DIRECTION)
    heads = sum(claim.topic is Topic.HEADS for claim in claims)
    if (is_attention(layers) or any(claim.topic is Topic.PROJECTIONS for claim in claims)) and not heads:
        found.append(Question.HEADS)
    elif heads and has_other_attention(layers):
        found.append(Question.OTHER_HEADS)
    if any(layer.kind is LayerKind.NORM and not is_called_layer_norm(layer.path) for layer in layers):
        found.append(Question.NORM)
    if not ordered:
        found.append(Question.FIRST)
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
