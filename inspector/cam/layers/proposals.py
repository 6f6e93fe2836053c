"""Which layer to look at: the ones that still know where, the one that knows most about what first.

Found by tracing shapes (`engine/trace.py`), not by names:
- convolutional networks: the last map before the global pooling (Grad-CAM's own choice, Selvaraju 2017, section 3);
- networks that keep channels last (Swin): the same, read as batch x height x width x channels;
- vision transformers with a class token: what enters the last attention. Behind it only the class token reaches the
  answer, so the gradient of every patch is exactly 0 there;
- those that answer from the mean of their patches: the last map again. What enters the last attention is the lesser
  part of it there, since each patch also goes on beside the attention.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from torch import nn

from inspector.cam.engine.capture import unwrap
from inspector.cam.engine.trace import Trace, TracedCall, trace
from inspector.cam.layers.grids import Grids
from inspector.cam.layers.layouts import split_layout, with_layout
from inspector.cam.layers.patches import entering_attention, rank_by_attention, rank_by_mean, rank_steps
from inspector.cam.layers.ranking import COMFORTABLE_SIDE, Pair, depth, grid_text, outermost, why_chosen, why_earlier
from inspector.cam.layers.rows import in_rows
from inspector.cam.report import LayerProposal
from inspector.errors import LayerNotSpatial, NoSuchLayer

MOST_PROPOSALS = 8


def propose_layers(model: nn.Module, input_shape: tuple[int, int, int]) -> tuple[LayerProposal, ...]:
    """Layers worth explaining, the suggested one first, at most eight.

    input_shape: (C, H, W). Raises LayerNotSpatial when no layer keeps a map, ExplainError when the model does not
    accept the input.
    """
    seen = trace(model, input_shape)
    proposals = _proposals(model, seen)
    right = _in_order(model, seen, proposals) or [_check_order(model, seen, proposals[0])]
    return tuple(replace(layer, rank=rank) for rank, layer in enumerate(right, start=1))


def find_layer(model: nn.Module, path: str, input_shape: tuple[int, int, int]) -> LayerProposal:
    """The layer that somebody asked for by name; "relu:0" is the first call of a module that is called several times.

    Without a number the last call is meant. "norm=NHWC", "ln_1=1+8x8": with its output read so (`layouts.py`). rank is
    that of the proposals, 0 when it is none of them.
    Raises NoSuchLayer with close matches, LayerNotSpatial with the shape that was found, UsageError for no layout.
    """
    modules = dict(unwrap(model).named_modules(remove_duplicate=False))
    whole, layout = split_layout(path, modules)
    name, call = _split_call(whole, modules)
    if name not in modules or not name:
        near = difflib.get_close_matches(name, [known for known in modules if known], n=3, cutoff=0.5)
        raise NoSuchLayer(
            f"The model has no layer {name!r}.",
            hint=f"Close: {', '.join(near)}." if near else "Choose one of the proposed layers.",
        )
    # A shared module has several names and is traced under its first.
    first_name = next(known for known, module in modules.items() if module is modules[name])
    seen = trace(model, input_shape)
    calls = [traced for traced in seen.calls if traced.path == first_name]
    if not calls:
        raise LayerNotSpatial(
            f"Layer {name!r} is not called by the forward pass, so it has no output to look at.",
            hint="Choose the module around it.",
        )
    if call is not None and not 0 <= call < len(calls):
        raise NoSuchLayer(f"Layer {name!r} is called {len(calls)} times; there is no call {call}.")
    wanted = calls[-1 if call is None else call]
    try:
        proposals = _proposals(model, seen)
    except LayerNotSpatial:
        proposals = ()
    for proposal in proposals:
        if (proposal.path, proposal.call) == (wanted.path, wanted.call):
            return with_layout(proposal, layout) if layout else _check_order(model, seen, proposal)
    for traced, found in _spatial(seen, keep_single_cells=True):
        if traced is wanted:
            layer = replace(found, patches_answer=any(proposal.patches_answer for proposal in proposals))
            return with_layout(layer, layout) if layout else _check_order(model, seen, layer)
    if layout and wanted.shape[:1] == (seen.batch,):
        return with_layout(_layer_of(seen, wanted, "", 0, (0, 0)), layout)
    shape = "x".join(map(str, wanted.shape[1:])) or "a single number"
    raise LayerNotSpatial(
        f"Layer {name!r} puts out {shape} for each picture: no height and width.",
        hint="Choose a layer before the pooling or flattening.",
    )


def find_axes(
    model: nn.Module, path: str, call: int | None, shape: tuple[int, ...], input_shape: tuple[int, int, int]
) -> tuple[str, int, tuple[int, int]] | None:
    """(layout, prefix tokens, grid) of a tensor of some shape in a pass; None where nothing tells it for certain.

    path, call: of the module that put it out, call None for a tensor that went in. shape: with the batch.
    Raises ExplainError where the model does not accept such an input.
    """
    seen = trace(model, input_shape)
    made = next((one for one in seen.calls if (one.path, one.call) == (path, call)), None)
    like = made or next(iter(seen.calls), None)
    if like is None:
        return None
    # What a module knows of its channels holds for its own output.
    asked = replace(like, shape=(seen.batch, *shape[1:]), channels=like.channels if made is not None else "")
    found = Grids.of(seen).read(asked)
    if found is None or (found[0] == "NLC" and not _rows_hold(model, seen, asked, found)):
        return None
    return found


def _rows_hold(model: nn.Module, seen: Trace, call: TracedCall, found: tuple[str, int, tuple[int, int]]) -> bool:
    """Whether tokens of this shape lie row by row, by what enters the first attention where it is alike."""
    entering = entering_attention([pair for pair in _spatial(seen) if pair[1].layout == "NLC"], seen)
    if entering and in_rows(model, entering[-1], seen.input_shape):
        return True
    layer = _layer_of(seen, call, *found)
    return layer.shape == call.shape[1:] and call in seen.calls and in_rows(model, layer, seen.input_shape)


def _in_order(model: nn.Module, seen: Trace, layers: Sequence[LayerProposal]) -> list[LayerProposal]:
    """Without those whose tokens do not lie row by row."""
    if all(layer.layout != "NLC" for layer in layers):
        return list(layers)
    entering = entering_attention([pair for pair in _spatial(seen) if pair[1].layout == "NLC"], seen)
    # Before the first attention the answer is exact and cheap.
    if not entering or in_rows(model, entering[-1], seen.input_shape):
        return list(layers)
    # Tokens of a later stage may lie in rows though those of an earlier one do not (Hiera's last).
    return [layer for layer in layers if layer.layout != "NLC" or in_rows(model, layer, seen.input_shape)]


def _check_order(model: nn.Module, seen: Trace, layer: LayerProposal) -> LayerProposal:
    """The layer itself. Raises LayerNotSpatial where it has tokens that do not lie row by row."""
    if not _in_order(model, seen, [layer]):
        raise LayerNotSpatial(
            f"The {math.prod(layer.grid)} tokens of {layer.path!r} do not lie row by row: a changed patch changes "
            "another token, so a map would show heat in the wrong places.",
            hint="Saliency, integrated gradients, SmoothGrad and occlusion look at no layer.",
        )
    return layer


def _proposals(model: nn.Module, seen: Trace) -> tuple[LayerProposal, ...]:
    everywhere = list(_spatial(seen))
    # What the answer does not come from has no gradient: a second head, or a container of which only another part goes
    # on, such as the pooled one of a map and its mean.
    spatial = [pair for pair in everywhere if pair[0].reaches] or everywhere
    if not spatial:
        shape = "x".join(map(str, seen.input_shape))
        raise LayerNotSpatial(
            f"No layer of this model puts out a map larger than one cell for an input of {shape}.",
            hint="Try a larger picture; a network of fully connected layers has no map at all.",
        )
    ranked: list[tuple[LayerProposal, str]] = []
    if spatial[-1][1].layout == "NLC":
        tokens = [pair for pair in spatial if pair[1].layout == "NLC"]
        ranked = [(replace(layer, patches_answer=True), says) for layer, says in rank_by_mean(model, tokens, seen)]
        if ranked:
            ranked += _before_tokens(spatial, {layer.grid for layer, _ in ranked})
        ranked = ranked or rank_by_attention(tokens, seen) or rank_steps(tokens)
    if not ranked:
        # Without attention over all of them nothing would be carried from patches to tokens before them.
        maps = [pair for pair in spatial if not pair[1].prefix_tokens] or spatial
        ranked = _rank_maps(_before_boxes(maps) if seen.boxes else maps, _scores_already(seen, maps))
    return tuple(
        replace(layer, rank=rank, reason=reason)
        for rank, (layer, reason) in enumerate(ranked[:MOST_PROPOSALS], start=1)
    )


def _before_boxes(maps: list[Pair]) -> list[Pair]:
    """The maps that a detector's every box comes from, where it is built as torchvision's are.

    Its heads look at several sizes one after the other, so the last map is one head's. What a feature pyramid or extra
    stages add to the body is left out too: each box comes from one level, and the gradient of the others is 0.
    """
    for start in ("backbone.body.", "backbone.features.", "backbone."):
        # A body that gives several sizes at once is no single map; its last stage is.
        inside = [pair for pair in maps if f"{pair[1].path}.".startswith(start) and not pair[0].several]
        if inside:
            return inside
    return maps


def _scores_already(seen: Trace, maps: list[Pair]) -> set[int]:
    """The memory of maps with one channel per class that nothing with weights follows on the only way to the answer.

    A body may have as many channels as there are classes (512 of a ResNet-18), and be no scores.
    """
    if seen.classes is None or seen.classes < 2:
        return set()
    last = max((n for n, call in enumerate(seen.calls) if call.weights and call.reaches and call.alone), default=0)
    behind = {call.memory for call in seen.calls[last:]}
    return {call.memory for call, layer in maps if _channels(layer) == seen.classes and call.memory in behind}


def _rank_maps(spatial: list[Pair], scores: set[int]) -> list[tuple[LayerProposal, str]]:
    """The last map of each resolution; first the coarsest that is not too coarse."""
    # A pooled map knows less about where than what went into it; scores are the answer.
    pooled = {call.memory for call, _ in spatial if call.pooling} | scores
    # What weighs another map is said by what it was made of.
    pooled |= {call.memory for call, _ in spatial if call.gate and not call.alone}
    useful = [(call, layer) for call, layer in spatial if call.memory not in pooled]
    by_grid: dict[tuple[int, int], list[Pair]] = {}
    for call, layer in outermost(useful or spatial):
        same = by_grid.pop(layer.grid, [])
        by_grid[layer.grid] = [*same, (call, layer)]
    maps = [_end_of_stage(_whole(pairs)) for pairs in reversed(by_grid.values())]  # latest in the forward pass first
    chosen = next((layer for layer in maps if min(layer.grid) >= COMFORTABLE_SIDE), maps[0])
    ranked = [(chosen, why_chosen(chosen, maps[0]))]
    for layer in maps:
        if layer is not chosen:
            finer = math.prod(layer.grid) > math.prod(chosen.grid)
            says = "finer, but knows less about the class" if finer else "coarser"
            ranked.append((layer, f"The last {grid_text(layer)} map: {says}."))
    if len(maps) == 1:
        ranked += [(layer, why_earlier(layer)) for layer in _earlier_blocks(spatial, chosen)]
    return ranked


def _earlier_blocks(spatial: list[Pair], last: LayerProposal) -> list[LayerProposal]:
    """The ends of the blocks before the last, of a network that keeps one resolution all along (ConvMixer's)."""
    alone = [layer for call, layer in outermost(spatial) if call.alone]
    before = alone[: alone.index(last)] if last in alone else []
    return [layer for layer in reversed(before) if (layer.kind, depth(layer)) == (last.kind, depth(last))]


def _before_tokens(spatial: list[Pair], known: set[tuple[int, int]]) -> list[tuple[LayerProposal, str]]:
    """The last map of each other resolution, of a network that makes its maps to tokens at last."""
    maps = [pair for pair in spatial if pair[1].layout != "NLC" and pair[1].grid not in known]
    return [
        (layer, f"The last {grid_text(layer)} map: finer, but knows less about the class.")
        for layer, _ in (_rank_maps(maps, set()) if maps else ())
    ]


def _whole(pairs: list[Pair]) -> list[LayerProposal]:
    """Those that all goes through, where there are any: one branch of several is part of what is known."""
    return [layer for call, layer in pairs if call.alone] or [layer for _, layer in pairs]


def _end_of_stage(layers: list[LayerProposal]) -> LayerProposal:
    """The last of these maps of one resolution, or the end of the block before it.

    The very last is often the first convolution inside the next, striding block ("features.9.block.0"). Among the last
    third the one that is nested least is what people call the end of the stage ("features.8").
    """
    late = layers[-math.ceil(len(layers) / 3) :]
    return min(reversed(late), key=depth)


def _spatial(seen: Trace, *, keep_single_cells: bool = False) -> Iterator[Pair]:
    """Calls whose output has a grid, in the order of the forward pass."""
    grids = Grids.of(seen)
    for call in seen.calls:
        # Tables that do not depend on the picture (Swin's relative positions) have no batch dimension.
        found = grids.read(call) if call.shape[:1] == (seen.batch,) else None
        if found is None:
            continue
        layout, prefix, grid = found
        if max(grid) > 1 or keep_single_cells:
            yield call, _layer_of(seen, call, layout, prefix, grid)


def _layer_of(seen: Trace, call: TracedCall, layout: str, prefix: int, grid: tuple[int, int]) -> LayerProposal:
    return LayerProposal(
        path=call.path,
        call=call.call,
        calls=1 + max(other.call for other in seen.calls if other.path == call.path),
        kind=call.kind,
        shape=call.shape[1:],
        layout=layout,
        prefix_tokens=prefix,
        grid=grid,
        rank=0,
        reason="",
        centres=None if call.places is None or not layout else call.places.centres(layout, prefix, grid),
    )


def _split_call(path: str, modules: dict[str, nn.Module]) -> tuple[str, int | None]:
    """ "relu:0" -> ("relu", 0), and names as other wrappers write them -> ours."""
    name, colon, number = path.rpartition(":")
    call = int(number) if colon and number.isdecimal() else None
    name = path if call is None else name
    for wrapper in ("module.", "_orig_mod."):
        if name not in modules and name.startswith(wrapper):
            name = name.removeprefix(wrapper)
    return name, call


def _channels(layer: LayerProposal) -> int:
    return layer.shape[0] if layer.layout == "NCHW" else layer.shape[-1]
