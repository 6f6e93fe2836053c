"""Tensors of the model's own code that do not fit each other: sums, cat, view, unpacking, dimensions."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence

from torch import Tensor

from inspector.doctor.causes.entry import Cause
from inspector.doctor.causes.linear import map_before, side_guesses, side_wanted
from inspector.doctor.causes.repairs import (
    BATCH,
    CHANNEL,
    LAST_WITHOUT_BATCH,
    fitting_multiple,
    fitting_sides,
    input_name,
    lacks_batch,
    resized_input,
    tried_repair,
)
from inspector.doctor.causes.squeezed import squeezed_batch
from inspector.doctor.constructors import line_that_makes
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene
from inspector.forward.watch import tensors_in
from inspector.units import counted


def by_multiple(scene: Scene, says: str) -> Diagnosis | None:
    """The sides have to be multiples of what strides and pools halve."""
    fits = fitting_multiple(scene)
    if fits is None or scene.picture is None:
        return None
    multiple, height, width = fits
    size = f"{scene.picture.shape[-2]}x{scene.picture.shape[-1]}"
    right, below = width - scene.picture.shape[-1], height - scene.picture.shape[-2]
    name = input_name(scene)
    return Diagnosis(
        cause="size-not-divisible",
        says=f"{says} The picture of {size} is halved on the way and does not come back to the same size.",
        fix=f"Use sides that are multiples of {multiple}: {height}x{width} runs through; or resize to the skip's size "
        f"before they meet. The answer then has its sides, too: crop it ([..., :{scene.picture.shape[-2]}, "
        f":{scene.picture.shape[-1]}]).",
        code=f"{name} = torch.nn.functional.pad({name}, (0, {right}, 0, {below}))  # at the start of forward",
        tried=(f"a picture of {height}x{width}: runs through",),
    )


def _fix_of_view(numel: int, wants: Sequence[int], known: int) -> str:
    """-1 only where what is left divides."""
    if -1 in wants:
        return f"{numel:,} is no multiple of {known:,}: the sizes are of another input or layer."
    if any(size > 0 and known and numel % (known // size) == 0 for size in wants):
        return f"It would hold {known:,}: -1 in one place lets torch work out the size."
    return f"It would hold {known:,}, and -1 in no place would help: {numel:,} is no multiple of the other sizes."


_INVALID = re.compile(r"shape '\[(?P<sizes>[-\d, ]+)\]' is invalid for input of size (?P<numel>\d+)")


def find_view(scene: Scene) -> Diagnosis | None:
    """A view or reshape to a shape that holds another number of elements."""
    match = _INVALID.search(scene.text)
    if match is None:
        return None
    wants = tuple(int(n) for n in match["sizes"].split(","))
    numel = int(match["numel"])
    pool = [*scene.operands, *(v for v in scene.recorder.function_args[0] if isinstance(v, Tensor))]
    pool += list(scene.frame.variables.values()) if scene.frame is not None else []
    x = next((t for t in pool if isinstance(t, Tensor) and t.numel() == numel), None)
    told = scene.told(x) if x is not None else counted(numel, "value")
    says = f"A view as {', '.join(map(str, wants))} in {scene.path} does not hold the {numel:,} values of {told}."
    batch = x.shape[0] if x is not None and x.dim() else 0
    rest = math.prod(wants[1:])
    if batch and wants[0] not in (-1, batch) and -1 not in wants[1:] and rest * batch == numel:
        return Diagnosis(
            cause="batch-written-out",
            says=f"{says} The batch is written into the code: {wants[0]}, and this one is {batch}.",
            fix="Take it from the tensor.",
            code=f"x = x.view(x.size(0), {', '.join(map(str, wants[1:]))})",
        )
    heads = _heads(wants, x)
    if heads is not None:
        count, size, width = heads
        return Diagnosis(
            cause="heads-do-not-divide",
            says=f"{says} {count} heads of {size} are {count * size:,}, and the width is {width:,}.",
            fix="The width has to be a multiple of the number of heads.",
        )
    found = tried_repair(scene, BATCH) if scene.picture is not None and scene.picture.dim() < 4 else None
    if found is not None:
        return found
    known = abs(math.prod(n for n in wants if n != -1))
    map_ = map_before(scene, numel // batch) if batch else None
    guesses: tuple[int, ...] = ()
    if map_ is not None and scene.picture is not None and scene.picture.dim() == 4:
        guesses = side_guesses(scene.picture, map_[1], side_wanted(known if -1 in wants else rest, map_[1][1]))
    fits = fitting_sides(scene, guesses)
    if fits and scene.picture is not None:
        return Diagnosis(
            cause="picture-size",
            says=f"{says} The picture is {scene.picture.shape[-2]}x{scene.picture.shape[-1]}.",
            fix=f"Pictures of {fits[0]}x{fits[0]} run through; or x.flatten(1) and a head of that width.",
            code=resized_input(scene, fits[0]),
            tried=(f"a picture of {fits[0]}x{fits[0]}: runs through",),
        )
    between = _between(scene, wants, x) if x is not None else None
    if between is not None:
        maker = scene.recorder.maker(x) if x is not None else ""
        made = dict(scene.model.named_modules()).get(maker)
        line = line_that_makes(scene.model, maker) if maker and made is not None else None
        return Diagnosis(cause="view-of-shape", says=f"{says} {between[0]}", fix=between[1], change=line)
    return Diagnosis(
        cause="view-of-shape",
        says=says,
        fix=_fix_of_view(numel, wants, known),
    )


def _between(scene: Scene, wants: tuple[int, ...], x: Tensor) -> tuple[str, str] | None:
    """(sentence, fix) where all sizes fit but one dimension of x, which is to be split: 72 channels as 3 x 25."""
    shape = tuple(x.shape)
    front = next((i for i, (m, n) in enumerate(zip(wants, shape, strict=False)) if m != n), len(shape))
    back = 0
    while back < min(len(shape), len(wants)) - front - 1 and wants[-1 - back] == shape[-1 - back]:
        back += 1
    middle, has = wants[front : len(wants) - back], shape[front : len(shape) - back]
    if len(has) != 1 or len(middle) < 2 or front + back == 0 or any(n < 1 for n in middle):
        return None
    wanted, got = math.prod(middle), has[0]
    maker = scene.recorder.maker(x) or "what comes before"
    what = "channels" if front == 1 and len(shape) == 4 else "values"
    says = f"{' x '.join(map(str, middle))} = {wanted:,} {what} are wanted, {maker} gives {got:,}"
    side = math.isqrt(got // middle[0]) if got % middle[0] == 0 else 0
    if len(middle) == 3 and middle[1] == middle[2] and side * side * middle[0] == got:
        says += f" = {middle[0]} x {side} x {side}"
    else:
        last = math.prod(middle[:-1])
        says += f" = {' x '.join(map(str, (*middle[:-1], got // last)))}" if got % last == 0 else ""
    return f"{says}.", f"Let {maker} give {wanted:,}, or view it as what it gives."


def _heads(wants: tuple[int, ...], x: Tensor | None) -> tuple[int, int, int] | None:
    """(heads, size of each, width) where the last dimension was to be split in two."""
    if x is None or x.dim() < 2 or len(wants) != x.dim() + 1 or -1 in wants[-2:]:
        return None
    lead = all(n in (-1, m) for n, m in zip(wants[: x.dim() - 1], x.shape[:-1], strict=True))
    count, size = wants[-2:]
    return (count, size, x.shape[-1]) if lead and count * size != x.shape[-1] else None


def find_contiguous(scene: Scene) -> Diagnosis | None:
    """A view across a transposed tensor."""
    if "view size is not compatible" not in scene.text:
        return None
    x = next((t for t in scene.operands if not t.is_contiguous()), None)
    told = f": {scene.told(x)}" if x is not None else ""
    text = scene.frame.where.text if scene.frame is not None else ""
    return Diagnosis(
        cause="view-of-transposed",
        says=f"view cannot go across dimensions that were transposed before{told}.",
        fix="reshape copies where it has to; or .contiguous() before .view.",
        code=text.replace(".view(", ".reshape(") if text.count(".view(") == 1 else "x = x.reshape(...)",
    )


_UNPACK = re.compile(
    r"not enough values to unpack \(expected (\d+), got (\d+)\)|too many values to unpack \(expected (\d+)"
)


def find_unpacking(scene: Scene) -> Diagnosis | None:
    """b, c, h, w = x.shape of a tensor with another number of dimensions."""
    match = _UNPACK.search(scene.text)
    if match is None or scene.frame is None or not isinstance(scene.frame.statement, ast.Assign):
        return None
    expected = int(match[1] or match[3])
    value = scene.frame.statement.value
    if isinstance(value, ast.Call):
        value = value.func
    holder = value.value if isinstance(value, ast.Attribute) and value.attr in ("shape", "size") else value
    x = scene.frame.variables.get(holder.id) if isinstance(holder, ast.Name) else None
    if not isinstance(x, Tensor):
        return _parts(scene, expected, int(match[2] or 0))
    if holder is value:
        at = next((i for i in range(1, x.dim()) if x.shape[i] == expected != x.shape[0]), None)
        if at is not None:
            return _turned(scene, x, expected, at)
        return Diagnosis(
            cause="unpacking",
            says=f"{expected} values were to be unpacked from one tensor, {scene.told(x)}.",
            fix="What was called gives one tensor, not several.",
        )
    repairs = ((BATCH,), (LAST_WITHOUT_BATCH,), (CHANNEL,)) if x.dim() < expected else ()
    for tried in repairs:
        found = tried_repair(scene, *tried)
        if found is not None:
            return found
    return Diagnosis(
        cause="unpacking",
        says=f"The code takes {counted(expected, 'dimension')} and {scene.told(x)} has {x.dim()}.",
        fix="Add the one that is missing with unsqueeze, or flatten what is too many.",
    )


def _turned(scene: Scene, x: Tensor, expected: int, at: int) -> Diagnosis:
    """Dimension `at` has as many entries as there are names, and dimension 0, which is unpacked, has not."""
    name = scene.variable_of(x) or "x"
    turn = ".t()" if x.dim() == 2 else f".unbind({at})"
    shape, kind = tuple(x.shape), x.dtype

    def change(one: Tensor) -> Tensor | None:
        return one.transpose(0, at) if tuple(one.shape) == shape and one.dtype == kind else None

    is_input = scene.maker_of(x) == "the input"
    runs = is_input and scene.runs_with(change, numbers=True)
    return Diagnosis(
        cause="unpacking",
        says=f"{expected} values were to be unpacked from dimension 0 of {scene.told(x)}, which has {x.shape[0]:,}; "
        f"dimension {at} has {expected}.",
        fix="Transpose it before: unpacking goes over dimension 0."
        if x.dim() == 2
        else f"Unbind dimension {at}: unpacking goes over dimension 0.",
        code=f"{name} = {name}{turn}",
        tried=(f"{name}.transpose(0, {at}): runs through",) if runs else (),
    )


def _parts(scene: Scene, expected: int, got: int) -> Diagnosis | None:
    """More names than a module gives parts."""
    given = [one for one in scene.recorder.gave_no_tensor.values() if isinstance(one[2], tuple | list)]
    path, kind, value = given[-1] if given else ("", "", ())
    if not given or (got and len(value) != got):
        assert scene.frame is not None
        where = scene.frame.where
        return Diagnosis(
            cause="unpacking",
            says=f"{where.file}, line {where.line} takes {counted(expected, 'part')} and gets {got or 'more'}: "
            f"{where.text}",
            fix="Take as many as there are.",
        )
    lstm = kind == "LSTM" and expected == 3
    return Diagnosis(
        cause="unpacking",
        says=f"The line takes {counted(expected, 'part')} and {scene.name_of(path)} ({kind}) gives {len(value)}.",
        fix="An LSTM gives its output and one tuple of two states." if lstm else "Take as many as it gives.",
        code="out, (h, c) = lstm(x)" if lstm else "",
        sureness=Sureness.CERTAIN if lstm else Sureness.LIKELY,
    )


_DIMS = re.compile(
    r"Dimension out of range|too many indices for tensor|number of dimensions in the tensor input does not match|"
    r"[Dd]imension specified as|start_dim|is not equal to len\(dims\)|permute\(sparse|IndexError: dim",
)


def find_dimension(scene: Scene) -> Diagnosis | None:
    """A dimension was named that the tensor has not."""
    if not _DIMS.search(scene.text):
        return None
    name, args, kwargs = scene.recorder.asked
    operands = list(tensors_in((tuple(args), dict(kwargs)))) or scene.operands
    got = _GOT.search(scene.text)
    # Never one that has the dimension that is named.
    lacking = [t for t in operands if got is None or not -t.dim() <= int(got[1]) < t.dim()]
    x = next(iter(lacking), None)
    if scene.picture is not None and scene.picture.dim() < 4:
        for repairs in ((BATCH,), (CHANNEL,), (LAST_WITHOUT_BATCH,)):
            found = tried_repair(scene, *repairs)
            if found is not None and found.sureness is Sureness.CERTAIN and lacks_batch(scene):
                return found
    squeezed = next((t for t in lacking if scene.recorder.squeezes.of(t) is not None), None)
    if squeezed is not None and all(t.dim() and t.shape[0] == 1 for t in scene.inputs):
        return squeezed_batch(scene, squeezed, sureness=Sureness.LIKELY)
    told = f": {scene.told(x)}" if x is not None else ""
    dimension = f"dimension {got[1]}, which" if got is not None and x is not None else "a dimension that"
    return Diagnosis(
        cause="no-such-dimension",
        says=f"{name.strip('_') or 'An operation'} in {scene.path} names {dimension} the tensor does not have{told}.",
        fix="Dimensions count from 0, negative ones from the end; a missing batch or channel is added by unsqueeze.",
        sureness=Sureness.CERTAIN if x is not None else Sureness.LIKELY,
    )


_GOT = re.compile(r"but got (-?\d+)")
_SIZES = re.compile(r"size|dimension|shape|divisible|multiply up|broadcast|subscript|channel|length", re.IGNORECASE)


def find_other_shape(scene: Scene) -> Diagnosis | None:
    """Functions that say in their own words which sizes they were given."""
    if not isinstance(scene.error, RuntimeError | ValueError) or not _SIZES.search(scene.text):
        return None
    # Words of the code itself are no words of torch.
    if scene.frame is not None and isinstance(scene.frame.statement, ast.Raise):
        return None
    given = [t for t in scene.recorder.function_args[0] if isinstance(t, Tensor)] or scene.operands
    if not given or not scene.recorder.function_name:
        return None
    name = scene.recorder.function_name.strip("_") or scene.operator
    return Diagnosis(
        cause="shape-of-operand",
        says=f"{name} in {scene.path} was given sizes that do not fit: {'; '.join(scene.told(t) for t in given[:3])}.",
        fix=f"torch says: {scene.first_line}",
        sureness=Sureness.LIKELY,
    )


CAUSES = (
    Cause(kinds=("view-of-transposed",), find=find_contiguous),
    Cause(
        kinds=("view-of-shape", "batch-written-out", "heads-do-not-divide", "batch-missing", "picture-size"),
        find=find_view,
    ),
    Cause(
        kinds=("unpacking", "batch-missing", "channels-last", "channel-missing"),
        find=find_unpacking,
    ),
    Cause(
        kinds=("no-such-dimension", "batch-missing", "channel-missing", "channels-last"),
        find=find_dimension,
    ),
)
LAST = (Cause(kinds=("shape-of-operand",), find=find_other_shape),)
