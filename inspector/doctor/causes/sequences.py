"""Recurrent layers and attention: widths, states, masks."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from inspector.doctor.causes.entry import Cause
from inspector.doctor.causes.lines import RUNS, outcome
from inspector.doctor.causes.mask_shapes import other_mask
from inspector.doctor.causes.repairs import BATCH, SWAPPED, input_name, tried_repair
from inspector.doctor.causes.statements import written_argument
from inspector.doctor.constructors import line_of_buffer, line_that_makes, with_argument
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.rewriting import statements_of
from inspector.doctor.scene import Scene
from inspector.doctor.values_named import value_of
from inspector.units import counted, human_shape


def find_recurrent(scene: Scene) -> Diagnosis | None:
    """LSTM, GRU, RNN and their cells."""
    layer, x = scene.layer, scene.given
    if not isinstance(layer, nn.RNNBase | nn.RNNCellBase) or not isinstance(x, Tensor):
        return None
    takes = layer.input_size
    if x.dim() and x.shape[-1] != takes:
        if scene.before_all_weights and x.dim() == 3:
            found = tried_repair(scene, SWAPPED)
            if found is not None:
                return found
        turned = _features_elsewhere(scene, layer, x) if isinstance(layer, nn.RNNBase) and x.dim() == 3 else None
        if turned is not None:
            return turned
        back = isinstance(layer, nn.RNNBase) and layer.input_size * 2 == x.shape[-1]
        hint = " A bidirectional layer gives twice its hidden size." if back else ""
        return Diagnosis(
            cause="recurrent-width",
            says=f"{scene.path} takes {counted(takes, 'feature')} last and received {scene.told(x)}.",
            fix=f"Make it with input_size={x.shape[-1]}, or give it {takes:,} features.{hint}",
        )
    states = scene.call.args[1:] if scene.call is not None else ()
    state = next((s for s in states if s is not None), None)
    hidden = state[0] if isinstance(state, tuple | list) and state else state
    if isinstance(hidden, Tensor) and isinstance(layer, nn.RNNBase):
        ways = 2 if layer.bidirectional else 1
        batch = x.shape[0 if layer.batch_first else 1] if x.dim() == 3 else 0
        wants = (layer.num_layers * ways, batch, layer.proj_size or layer.hidden_size)
        # Who writes batch_first=True means it; without the word it is forgotten.
        first = x.shape[0] if x.dim() == 3 and not layer.batch_first else 0
        if first and batch and tuple(hidden.shape) == (wants[0], first, wants[2]) != wants:
            return _batch_elsewhere(scene, layer, x, hidden)
        if batch and tuple(hidden.shape) != wants:
            return _other_state(scene, layer, x, hidden, wants)
    return None


def _features_elsewhere(scene: Scene, layer: nn.RNNBase, x: Tensor) -> Diagnosis | None:
    """A map of batch x channels x width, as convolutions give it, before a layer that takes the features last."""
    takes, shape = layer.input_size, tuple(x.shape)
    if takes not in shape[:2]:
        return None
    axis = 1 if shape[1] == takes else 0
    orders = ((0, 2, 1), (2, 0, 1)) if axis == 1 else ((1, 2, 0), (2, 1, 0))
    order = orders[0] if layer.batch_first else orders[1]

    def change(given: Tensor) -> Tensor | None:
        return given.permute(order) if tuple(given.shape) == shape else None

    runs = scene.trials.runs_given(layer, change, (scene.args, scene.kwargs))
    name = scene.variable_of(x) or written_argument(scene) or "x"
    start = f"{name} = " if name.isidentifier() else ""
    takes_as = "batch x time x features" if layer.batch_first else "time x batch x features (no batch_first=True)"
    return Diagnosis(
        cause="sequence-transposed",
        says=f"{scene.path} takes {counted(takes, 'feature')} last and received {scene.told(x)}: "
        f"they stand in dimension {axis}.",
        fix=f"Permute it before: this layer takes {takes_as}.",
        code=f"{start}{name}.permute({', '.join(map(str, order))})",
        sureness=Sureness.CERTAIN if runs else Sureness.LIKELY,
        tried=("that, to the end of the forward: runs through",) if runs else (),
    )


def _other_state(scene: Scene, layer: nn.RNNBase, x: Tensor, hidden: Tensor, wants: tuple[int, int, int]) -> Diagnosis:
    """The state has another shape; the line that made it is the one to change."""
    axis, got = (0 if layer.batch_first else 1), tuple(hidden.shape)
    line = scene.recorder.born_at(hidden)
    kept = scene.recorder.model_tensor(hidden)
    line = line or (line_of_buffer(scene.model, kept) if kept else None)
    swapped = (
        f" batch_first={layer.batch_first} takes the batch of the input as its "
        f"{'first' if layer.batch_first else 'second'} dimension."
    )
    only_batch = len(got) == 3 and got[0] == wants[0] and got[2] == wants[2] and got[1] != wants[1]
    says = f"The state of {scene.path} has to be {human_shape(wants)} and is {human_shape(got)}"
    if only_batch:
        says += f": it is made for a batch of {got[1]:,}, and this one has {wants[1]:,}"
    code, tried = _state_lines(scene, layer, x, axis, wants)
    return Diagnosis(
        cause="recurrent-state",
        says=f"{says}.",
        fix=f"Its dimensions are layers x directions, batch, hidden size: take the batch from the input.{swapped}",
        code=code,
        tried=tried,
        change=line,
    )


def _state_lines(
    scene: Scene, layer: nn.RNNBase, x: Tensor, axis: int, wants: tuple[int, int, int]
) -> tuple[str, tuple[str, ...]]:
    """(lines that make the state of what the layer is given, what came of them), in the names of the failing line."""
    frame = scene.frame
    statement = frame.statement if frame is not None else None
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement is not None else []
    call = next((n for n in calls if frame and value_of(n.func, frame.variables) is layer and len(n.args) > 1), None)
    name, source = scene.variable_of(x), ""
    if not name:
        # Token ids are whole numbers, a state is none: the weights know their type.
        name = input_name(scene)
        source = f"{ast.unparse(call.func)}.weight_hh_l0" if call is not None else ""
    zeros = f"{source or name}.new_zeros({wants[0]}, {name}.size({axis}), {wants[2]})"
    cell = zeros
    if isinstance(layer, nn.LSTM) and layer.proj_size:
        cell = f"{source or name}.new_zeros({wants[0]}, {name}.size({axis}), {layer.hidden_size})"
    given = call.args[1] if call is not None else None
    if isinstance(layer, nn.LSTM):
        pair = given.elts if isinstance(given, ast.Tuple) and len(given.elts) == 2 else []
        if pair and all(isinstance(one, ast.Name) for one in pair):
            code = f"{ast.unparse(pair[0])} = {zeros}\n{ast.unparse(pair[1])} = {cell}"
        else:
            plain = isinstance(given, ast.Name) or _is_of_self(given)
            code = f"{ast.unparse(given) if plain and given is not None else 'state'} = ({zeros}, {cell})"
    else:
        plain = isinstance(given, ast.Name) or _is_of_self(given)
        code = f"{ast.unparse(given) if plain and given is not None else 'h'} = {zeros}"
    statements = statements_of(code) or []
    if call is None or outcome(scene, lambda one: [*statements, one]) != "":
        return code, ()
    return code, (RUNS,)


def _is_of_self(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _batch_elsewhere(scene: Scene, layer: nn.RNNBase, x: Tensor, hidden: Tensor) -> Diagnosis:
    """The state has as many samples as dimension 0 of the input."""
    runs = scene.trials.runs_batch_first([layer], (scene.args, scene.kwargs))
    numbers = f"{layer.input_size}, {layer.hidden_size}" + (f", {layer.num_layers}" if layer.num_layers > 1 else "")
    more = ", bidirectional=True" if layer.bidirectional else ""
    return Diagnosis(
        cause="recurrent-state",
        says=f"{scene.path} is made without batch_first=True and takes dimension 1 of {scene.told(x)} for the batch "
        f"({x.shape[1]:,}); the state of {human_shape(tuple(hidden.shape))} has a batch of {x.shape[0]:,}, which is "
        "dimension 0.",
        fix="Make the layer with batch_first=True; the state keeps its batch second all the same.",
        code=f"nn.{type(layer).__name__}({numbers}{more}, batch_first=True)",
        tried=("batch_first=True: runs through",) if runs else (),
    )


def find_attention(scene: Scene) -> Diagnosis | None:
    """nn.MultiheadAttention: widths, lengths and masks."""
    layer, call = scene.layer, scene.call
    if not isinstance(layer, nn.MultiheadAttention) or call is None:
        return None
    names = ("query", "key", "value", "key_padding_mask", "need_weights", "attn_mask")
    given = {**dict(zip(names, call.args, strict=False)), **call.kwargs}
    q, k, v = (given.get(name) for name in names[:3])
    if not (isinstance(q, Tensor) and isinstance(k, Tensor) and isinstance(v, Tensor)):
        return None
    for name, tensor, wants in (("query", q, layer.embed_dim), ("key", k, layer.kdim), ("value", v, layer.vdim)):
        if tensor.dim() and tensor.shape[-1] != wants:
            return Diagnosis(
                cause="attention-width",
                says=f"{scene.path} takes a {name} of width {wants:,} and received {scene.told(tensor)}.",
                fix=f"Make it with embed_dim={tensor.shape[-1]} or project it to {wants:,} before.",
            )
    if q.dim() == 3 == k.dim():
        first = 0 if layer.batch_first else 1
        found = _lacks_batch_first(scene, layer, q, k, given)
        if found is not None:
            return found
        if q.shape[first] != k.shape[first]:
            return Diagnosis(
                cause="attention-batch",
                says=f"{scene.path} takes the batch as its {'first' if layer.batch_first else 'second'} dimension "
                f"(batch_first={layer.batch_first}): query is {human_shape(tuple(q.shape))}, key "
                f"{human_shape(tuple(k.shape))}.",
                fix="Make it with batch_first=True, or transpose(0, 1) before and after."
                if not layer.batch_first
                else "Query and key need the same batch in front.",
            )
        batch, length, keys = q.shape[first], q.shape[1 - first], k.shape[1 - first]
        shapes: dict[str, set[tuple[int, ...]]] = {
            "attn_mask": {(length, keys), (batch * layer.num_heads, length, keys)},
            "key_padding_mask": {(batch, keys)},
        }
        for name, fits in shapes.items():
            mask = given.get(name)
            if isinstance(mask, Tensor) and tuple(mask.shape) not in fits:
                return other_mask(scene, layer, name, mask, fits, (batch, length))
    return tried_repair(scene, BATCH, sureness=Sureness.LIKELY) if q.dim() not in (2, 3) else None


def _lacks_batch_first(
    scene: Scene, layer: nn.MultiheadAttention, q: Tensor, k: Tensor, given: Mapping[str, Any]
) -> Diagnosis | None:
    """Attention that takes dimension 1 for the batch, where a mask or the keys say that it is dimension 0."""
    if layer.batch_first or q.shape[0] == q.shape[1]:
        return None
    batch, length, keys = q.shape[0], q.shape[1], k.shape[1]
    padding, mask = given.get("key_padding_mask"), given.get("attn_mask")
    why = ""
    if isinstance(padding, Tensor) and tuple(padding.shape) == (batch, keys) != (k.shape[1], k.shape[0]):
        why = f"the key_padding_mask of {human_shape(tuple(padding.shape))} has a batch of {batch:,}"
    elif isinstance(mask, Tensor) and mask.dim() == 2 and tuple(mask.shape) == (length, keys):
        why = f"the attn_mask of {human_shape(tuple(mask.shape))} has a length of {length:,}"
    elif k.shape[0] == batch and k.shape[1] != length:
        why = f"query and key ({human_shape(tuple(k.shape))}) have dimension 0 in common"
    elif mask is None and padding is None:
        return None
    if not why:
        return None
    others = [m for m in scene.model.modules() if getattr(m, "batch_first", None) is False]
    modules = [m for m in others if isinstance(m, nn.MultiheadAttention | nn.Transformer)]
    runs = scene.trials.runs_batch_first(modules, (scene.args, scene.kwargs))
    path = scene.call.path if scene.call is not None else ""
    line = line_that_makes(scene.model, path) if path else None
    return Diagnosis(
        cause="attention-batch",
        says=f"{scene.path} is made without batch_first=True and takes dimension 1 of {scene.told(q)} for the batch "
        f"({q.shape[1]:,}); {why}, so the batch is dimension 0.",
        fix="Make the layer with batch_first=True; turning the mask would run, and attend over the batch.",
        code=with_argument(line, "batch_first", "True") or "batch_first=True",
        tried=("batch_first=True, to the end of the forward: runs through",) if runs else (),
        change=line,
    )


CAUSES = (
    Cause(
        kinds=("recurrent-width", "recurrent-state", "sequence-transposed"),
        find=find_recurrent,
    ),
    Cause(
        kinds=("attention-width", "attention-batch", "attention-mask", "batch-missing"),
        find=find_attention,
    ),
)
