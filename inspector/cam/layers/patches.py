"""Which of a network's layers of tokens comes first: what patches still reach the answer from, and know most.

Where patches reach the answer behind the last attention (their mean is read), it is the last map of them. Where only a
class token does, it is what enters the last attention.
"""

from __future__ import annotations

from torch import nn

from inspector.cam.engine.behind import patches_reach
from inspector.cam.engine.trace import Trace, TracedCall
from inspector.cam.layers.ranking import COMFORTABLE_SIDE, Pair, grid_text, outermost, why_chosen, why_earlier
from inspector.cam.report import LayerProposal

Ranked = list[tuple[LayerProposal, str]]


def entering_attention(tokens: list[Pair], seen: Trace) -> list[LayerProposal]:
    """What enters each attention over all tokens, the last first."""
    return [layer for _, layer in _entering(tokens, seen)]


def _entering(tokens: list[Pair], seen: Trace) -> list[Pair]:
    entering: list[Pair] = []
    for attention in reversed(seen.calls):
        if attention.attention and attention.reaches:
            # The innermost producer finishes first: "ln_1", not a container that returns the same tensor.
            pair = next((pair for pair in tokens if pair[0].memory in attention.inputs), None)
            if pair is not None and pair not in entering:
                entering.append(pair)
    return entering


def rank_by_mean(model: nn.Module, tokens: list[Pair], seen: Trace) -> Ranked:
    """The steps that all goes through, the last first, where patches reach the answer from the last of them.

    tokens: calls that put out patches one after another, in the order of the forward pass.
    """
    steps = _steps(tokens)
    if not steps or not seen.on_meta or not _behind_attention(steps[0][0], seen):
        return []
    last = steps[0][1]
    if not patches_reach(model, last, seen.input_shape):
        return []
    layers = [layer for _, layer in steps]
    chosen = next((layer for layer in layers if min(layer.grid) >= COMFORTABLE_SIDE), last)
    earlier = [layer for layer in layers if layer is not chosen]
    return [(chosen, why_chosen(chosen, last))] + [(layer, _why_earlier(layer, chosen, layers)) for layer in earlier]


def _why_earlier(layer: LayerProposal, chosen: LayerProposal, layers: list[LayerProposal]) -> str:
    if layers.index(layer) < layers.index(chosen):
        return f"The map behind it, {grid_text(layer)}: coarser."
    return why_earlier(layer)


def _steps(tokens: list[Pair]) -> list[Pair]:
    """The tensors that everything goes through on its way to the answer, the last first.

    Of what lies inside a block only its end; a row of blocks is no block.
    """
    alone = [pair for pair in tokens if pair[0].alone and not pair[0].pooling]
    rows = {layer.path for _, layer in alone if _has_two_alike([p for p in alone if _inside(p[1], layer)])}
    named = outermost(pair for pair in alone if pair[1].path not in rows)
    return [pair for pair in reversed(named) if not any(_inside(pair[1], layer) for _, layer in named)]


def _has_two_alike(inside: list[Pair]) -> bool:
    """Whether two tensors come from modules of one kind."""
    ends = {(call.kind, call.memory) for call, _ in inside if not call.passes}
    return len({kind for kind, _ in ends}) < len(ends)


def _inside(layer: LayerProposal, around: LayerProposal) -> bool:
    return layer.path.startswith(f"{around.path}.")


def _behind_attention(step: TracedCall, seen: Trace) -> bool:
    """Whether it comes from the last attention that the answer comes from, or is it; so where there is none."""
    last = max((n for n, call in enumerate(seen.calls) if call.attention and call.reaches), default=None)
    return last is None or step is seen.calls[last] or bool(step.comes_from >> last & 1)


def rank_by_attention(tokens: list[Pair], seen: Trace) -> Ranked:
    """What enters each attention, the last first."""
    entering = _entering(tokens, seen)
    if not entering:
        return []
    first = entering[0][1]
    counted = "the class token" if first.prefix_tokens == 1 else f"the {first.prefix_tokens} prefix tokens"
    limit = f"; behind it only {counted} may reach the answer" if first.prefix_tokens else ""
    ranked = [(first, f"Enters the last attention, {grid_text(first)} patches{limit}.")]
    later: list[TracedCall] = [entering[0][0]]
    for call, layer in entering[1:]:
        number = seen.calls.index(call)
        # Two branches are two pictures of one thing: neither comes before the other.
        beside = not any(other.comes_from >> number & 1 for other in later) and bool(call.comes_from)
        later.append(call)
        where = "the last attention of another branch" if beside else "an earlier attention"
        says = "the answer comes from both" if beside else "knows less about the class"
        ranked.append((layer, f"Enters {where}, {grid_text(layer)} patches: {says}."))
    return ranked


def rank_steps(tokens: list[Pair]) -> Ranked:
    """Tokens behind others that stand before the patches, where nothing says which modules are attention.

    The last two steps are left out: the norm and what carries patches to those tokens may be the same ones.
    """
    steps: dict[int, LayerProposal] = {}
    for call, layer in tokens:
        if call.alone and layer.prefix_tokens:
            steps.pop(call.memory, None)
            steps[call.memory] = layer
    ranked = [
        (layer, f"Tokens on the way to the answer, {grid_text(layer)} patches.") for layer in reversed(steps.values())
    ]
    return ranked[2:]
