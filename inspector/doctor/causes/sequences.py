"""Recurrent layers and attention: widths, states, masks."""

from __future__ import annotations

from torch import Tensor, nn

from inspector.doctor.causes.entry import Cause
from inspector.doctor.causes.repairs import BATCH, SWAPPED, tried_repair
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene
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
            swapped = (
                f" batch_first={layer.batch_first} takes the batch of the input as its "
                f"{'first' if layer.batch_first else 'second'} dimension."
            )
            return Diagnosis(
                cause="recurrent-state",
                says=f"The state of {scene.path} has to be {human_shape(wants)} and is "
                f"{human_shape(tuple(hidden.shape))}.",
                fix=f"Its dimensions are layers x directions, batch, hidden size.{swapped}",
                code=f"h = x.new_zeros({wants[0]}, x.size({0 if layer.batch_first else 1}), {wants[2]})",
            )
    return None


def _batch_elsewhere(scene: Scene, layer: nn.RNNBase, x: Tensor, hidden: Tensor) -> Diagnosis:
    """The state has as many samples as dimension 0 of the input."""
    runs = scene.trials.runs_set(layer, "batch_first", True, (scene.args, scene.kwargs))
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
        for name, fits in (
            ("attn_mask", {(length, keys), (batch * layer.num_heads, length, keys)}),
            ("key_padding_mask", {(batch, keys)}),
        ):
            mask = given.get(name)
            if isinstance(mask, Tensor) and tuple(mask.shape) not in fits:
                wanted = " or ".join(human_shape(shape) for shape in sorted(fits, key=len))
                return Diagnosis(
                    cause="attention-mask",
                    says=f"The {name} of {scene.path} has to be {wanted} and is {human_shape(tuple(mask.shape))}.",
                    fix="It was made without batch_first=True and takes length x batch x width: give it that where the "
                    "batch stands first."
                    if not layer.batch_first
                    else "Make it so.",
                )
    return tried_repair(scene, BATCH, sureness=Sureness.LIKELY) if q.dim() not in (2, 3) else None


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
