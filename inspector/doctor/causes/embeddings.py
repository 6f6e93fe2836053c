"""Lookups by index: tables that are too short."""

from __future__ import annotations

import re

import torch
from torch import Tensor, nn

from inspector.doctor.causes.entry import Cause
from inspector.doctor.causes.repairs import fitting_sides, resized_input
from inspector.doctor.report import Diagnosis
from inspector.doctor.scene import Scene
from inspector.units import human_shape


def find_out_of_range(scene: Scene) -> Diagnosis | None:
    """An index that an embedding has no row for."""
    weight: Tensor | None = None
    indices: Tensor | None = None
    if scene.operator in ("embedding", "_embedding_bag", "_embedding_bag_forward_only") and len(scene.operands) > 1:
        weight, indices = scene.operands[:2]
    elif isinstance(scene.layer, nn.Embedding | nn.EmbeddingBag) and isinstance(scene.given, Tensor):
        weight, indices = scene.layer.weight, scene.given
    if weight is None or indices is None or indices.is_floating_point() or not indices.numel() or indices.is_meta:
        return None
    low, high = int(indices.min()), int(indices.max())
    rows = weight.shape[0]
    if low >= 0 and high < rows:
        return None
    # A count from zero up is a position, whatever the table is called.
    line = indices.reshape(-1, indices.shape[-1])[0] if indices.dim() else indices.reshape(1)
    length = line.numel()
    if length > 1 and torch.equal(line, torch.arange(length, dtype=line.dtype) + line[0]) and high == int(line[-1]):
        first = int(line[0])
        if length <= rows:
            return Diagnosis(
                cause="position-table",
                says=f"The positions run from {first:,} to {high:,}, the rows of {scene.path} from 0 to {rows - 1:,}.",
                fix="Count from 0: torch.arange(length), not torch.arange(1, length + 1).",
            )
        return Diagnosis(
            cause="position-table",
            says=f"The sequence has {length:,} positions and the table {scene.path} has {rows:,} rows.",
            fix=f"Cut the sequence to {rows:,}, or make the table longer and train it.",
            code=f"x = x[:, :{rows}]",
        )
    if low < 0:
        return Diagnosis(
            cause="index-out-of-range",
            says=f"{scene.path} has rows 0 to {rows - 1:,} and was asked for {low:,}: {scene.told(indices)}.",
            fix="Negative numbers (-1, -100) stand for padding or ignored labels and are not to be looked up.",
            code="x = x.clamp(min=0)  # and mask these positions",
        )
    if low >= 1 and high == rows and indices.numel() > 1:
        return Diagnosis(
            cause="index-out-of-range",
            says=f"{scene.path} has rows 0 to {rows - 1:,} and was asked for {high:,}: {scene.told(indices)}. "
            f"The least index is {low:,}.",
            fix=f"If they count from 1, subtract 1; else make the table nn.Embedding({high + 1}, ...).",
            code=f"{scene.variable_of(indices) or 'x'} - 1",
        )
    return Diagnosis(
        cause="index-out-of-range",
        says=f"{scene.path} has rows 0 to {rows - 1:,} and was asked for {high:,}: {scene.told(indices)}.",
        fix=f"Make the table nn.Embedding({high + 1}, ...) or larger, or use the tokenizer or numbering that belongs "
        "to it.",
    )


def find_plain_index(scene: Scene) -> Diagnosis | None:
    """An index of the model's own code outside of a tensor."""
    match = re.search(r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)", scene.text)
    if match is None:
        return None
    tensor = next((t for t in scene.recorder.function_args[0] if isinstance(t, Tensor)), None)
    indices = next((t for t in scene.function_tensors if t is not tensor and not t.is_floating_point()), None)
    plain = indices is not None and indices.numel() > 1 and not indices.is_meta and indices.dtype is not torch.bool
    from_one = plain and match[1] == match[3] and indices is not None and int(indices.min()) >= 1
    least = f" The least index is {int(indices.min()):,}." if from_one and indices is not None else ""
    told = f" of {scene.told(tensor)}" if tensor is not None and _has(tensor, int(match[2]), int(match[3])) else ""
    return Diagnosis(
        cause="index-out-of-range",
        says=f"Index {match[1]} was asked for in dimension {match[2]}{told}, which has {match[3]}.{least}",
        fix="If they count from 1, subtract 1: counting begins at 0."
        if least
        else "Counting begins at 0: the last one is size - 1.",
    )


def _has(tensor: Tensor, dim: int, size: int) -> bool:
    return tensor.dim() > dim and tensor.shape[dim] == size


def find_position_parameter(scene: Scene) -> Diagnosis | None:
    """A table of positions that is added, and is shorter or longer than the sequence."""
    pair = scene.operands[:2]
    if len(pair) < 2 or scene.operator not in ("add", "add_"):
        return None
    table = next((t for t in pair if scene.recorder.model_tensor(t)), None)
    if table is None:
        return None
    other = pair[1] if table is pair[0] else pair[0]
    name = scene.recorder.model_tensor(table)
    rank = min(table.dim(), other.dim())
    differing = [
        -i
        for i in range(1, rank + 1)
        if table.shape[-i] != other.shape[-i] and 1 not in (table.shape[-i], other.shape[-i])
    ]
    if len(differing) != 1 or differing[0] == -1:
        return None
    has, needs = table.shape[differing[0]], other.shape[differing[0]]
    fits = fitting_sides(scene)
    picture = scene.picture
    if fits and picture is not None:
        return Diagnosis(
            cause="picture-size",
            says=f"A picture of {picture.shape[-2]}x{picture.shape[-1]} makes {needs:,} tokens and the table {name} "
            f"has {has:,} positions.",
            fix=f"Pictures of {fits[0]}x{fits[0]} run through; or interpolate the table.",
            code=resized_input(scene, fits[0]),
            tried=(f"a picture of {fits[0]}x{fits[0]}: runs through",),
        )
    token = _token_of(scene, other, other.dim() + differing[0], has, needs)
    if token:
        shape = list(table.shape)
        shape[differing[0]] = needs
        return Diagnosis(
            cause="position-table",
            says=f"The sequence has {needs:,} positions and the table {name} has {has:,} "
            f"({human_shape(tuple(table.shape))}): {token}, and the table has no row for it.",
            fix="Make the table longer by as many, or add it before they are joined.",
            code=f"self.{name.rpartition('.')[2]} = nn.Parameter(torch.zeros({', '.join(map(str, shape))}))",
        )
    return Diagnosis(
        cause="position-table",
        says=f"The sequence has {needs:,} positions and the table {name} has {has:,} "
        f"({human_shape(tuple(table.shape))}).",
        fix=f"Cut the sequence to {has:,}, or make the table longer and train it."
        if needs > has
        else "Take as many of its rows as the sequence is long.",
    )


def _token_of(scene: Scene, sequence: Tensor, axis: int, has: int, needs: int) -> str:
    """The clause of a class token: what torch.cat put before or behind the rows that the table has; "" for none."""
    joined = scene.recorder.joined(sequence)
    if joined is None or needs <= has or joined[1] != axis:
        return ""
    sizes = [shape[axis] for shape in joined[0]]
    if has not in sizes or sum(sizes) != needs:
        return ""
    first = sizes.index(has)
    extra = needs - has
    named = next((n for n in scene.recorder.names.values() if "cls" in n.lower() or "class" in n.lower()), "")
    what = f"a class token ({named})" if named and extra == 1 else f"{extra:,} more"
    return f"torch.cat puts {what} {'before' if first else 'behind'} the {has:,}"


CAUSES = (
    Cause(
        kinds=("index-out-of-range", "position-table"),
        find=find_out_of_range,
    ),
    Cause(
        kinds=("position-table", "picture-size"),
        find=find_position_parameter,
    ),
    Cause(kinds=("index-out-of-range",), find=find_plain_index),
)
