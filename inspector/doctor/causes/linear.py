"""Linear layers and products of matrices: widths that do not meet."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from inspector.doctor.causes.entry import Cause
from inspector.doctor.causes.repairs import BATCH, fitting_sides, resized_input, tried_repair
from inspector.doctor.causes.statements import written_argument
from inspector.doctor.constructors import called_name
from inspector.doctor.own_layers import is_own_class
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene
from inspector.units import counted, human_shape

_PRODUCTS = {
    "matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "mv", "dot", "linear", "baddbmm", "addmm",
    "scaled_dot_product_attention", "chain_matmul",
}  # fmt: skip


def find_linear(scene: Scene) -> Diagnosis | None:
    """A Linear whose input has another last dimension than it takes."""
    layer, x = scene.layer, scene.given
    if not isinstance(layer, nn.Linear) or not isinstance(x, Tensor) or x.dim() == 0:
        return None
    takes, got = layer.in_features, x.shape[-1]
    if takes == got:
        return None
    shape = human_shape(tuple(x.shape))
    start = f"{scene.path} takes {counted(takes, 'feature')} and received {got:,}"
    picture = scene.picture
    batch = picture.shape[0] if picture is not None and picture.dim() else 1
    if x.dim() > 2 and math.prod(x.shape[1:]) == takes:
        return Diagnosis(
            cause="not-flattened",
            says=f"{start}: its input of {shape} is not flattened ({' x '.join(map(str, x.shape[1:]))} = {takes:,}).",
            fix="Flatten it before this layer, from the second dimension on.",
            code=_changed_argument(scene, x, "flatten(1)"),
        )
    if x.dim() in (1, 2) and batch > 1 and x.numel() == batch * takes and x.shape[0] != batch:
        return Diagnosis(
            cause="batch-flattened",
            says=f"{start}: the batch of {batch} went into the features ({batch} x {takes:,} = {x.numel():,}).",
            fix="Flatten from the second dimension on, so that the batch stays.",
            code="x = x.flatten(1)  # or x.view(x.size(0), -1)",
        )
    found = tried_repair(scene, BATCH) if picture is not None and picture.dim() < 4 else None
    if found is not None:
        return found
    if x.dim() == 4 and x.shape[1] == takes:
        return Diagnosis(
            cause="channels-second",
            says=f"{start}: in its input of {shape} the {takes:,} channels stand second, and a Linear takes the last.",
            fix="Pool the map to one value for each channel, or put the channels last.",
            code="x = x.mean((2, 3))  # or x.permute(0, 2, 3, 1)",
        )
    tokens = _by_tokens(scene, start, takes, got) if x.dim() == 3 else None
    if tokens is not None:
        return tokens
    if x.dim() == 3 and x.shape[1] == takes:
        return Diagnosis(
            cause="sequence-transposed",
            says=f"{start}: in its input of {shape} the {takes:,} features stand second, and a Linear takes the last.",
            code="x = x.transpose(1, 2)",
            fix="Transpose it before this layer.",
            sureness=Sureness.CERTAIN if scene.before_all_weights else Sureness.LIKELY,
        )
    sized = _by_picture(scene, start, takes, got)
    if sized is not None:
        return sized
    return _by_neighbour(scene, start, x, takes, got)


def _changed_argument(scene: Scene, x: Tensor, call: str) -> str:
    """What the failing line gives the layer, with a call behind it."""
    name = scene.variable_of(x) or written_argument(scene) or "x"
    return f"{name} = {name}.{call}" if name.isidentifier() else f"{name}.{call}"


def map_before(scene: Scene, values: int) -> tuple[str, tuple[int, ...]] | None:
    """(where it was made, shape) of the last map that has as many values for each sample."""
    for record in reversed(scene.recorder.calls):
        for output in record.outputs[:1]:
            if len(output.shape) == 4 and math.prod(output.shape[1:]) == values:
                return record.path, output.shape
    return next((one for one in reversed(scene.recorder.maps) if math.prod(one[1][1:]) == values), None)


def side_wanted(takes: int, channels: int) -> int:
    """Of the square map of so many channels that has as many values; 0 where there is none."""
    side = math.isqrt(takes // channels) if takes % channels == 0 else 0
    return side if side * side * channels == takes else 0


def side_guesses(picture: Tensor, shape: tuple[int, ...], wanted: int) -> tuple[int, ...]:
    """Sides of pictures that may give a map of that side, where one of `shape` came out."""
    if not wanted:
        return ()
    guesses = []
    for size, side in zip(picture.shape[-2:], shape[-2:], strict=True):
        stride = size / max(side, 1)
        middle = round(size + stride * (wanted - side))
        guesses += [round(size * wanted / max(side, 1)), -(-size // max(side, 1)) * wanted, middle]
        guesses += [middle + way * step for step in range(1, 9) for way in (-1, 1)]
    return tuple(guesses)


def _by_picture(scene: Scene, start: str, takes: int, got: int) -> Diagnosis | None:
    x, map_ = scene.picture, map_before(scene, got)
    if x is None or x.dim() != 4 or map_ is None:
        return None
    _, channels, height, width = map_[1]
    size = f"{x.shape[-2]}x{x.shape[-1]}"
    place = map_[0] or "what comes before"
    says = f"{start}: the picture is {size}, so {place} gives {channels} x {height} x {width} = {got:,}"
    wanted = side_wanted(takes, channels)
    fits = fitting_sides(scene, side_guesses(x, map_[1], wanted))
    if not fits and not wanted:
        code = f"{_in_python(scene.call.path if scene.call else '')} = nn.Linear({got}, {_out(scene)})"
        return Diagnosis(
            cause="linear-features",
            says=f"{says}, and {takes:,} is no square map of {channels} channels.",
            fix=f"Make the layer for {got:,} features.",
            code=code if scene.call and scene.call.path else "",
        )
    fix = []
    if fits:
        fix.append(f"pictures of {fits[0]}x{fits[0]}")
    if wanted:
        pool = f"nn.AdaptiveAvgPool2d({wanted if wanted == 1 else (wanted, wanted)})"
        fix.append(f"{'global pooling' if wanted == 1 else 'pooling'} before it is flattened: {pool}")
    holder = person_holder(scene)
    if holder and fits:
        name = scene.call.path.rpartition(".")[2] if scene.call is not None else ""
        return Diagnosis(
            cause="picture-size",
            says=f"{says}" + (f"; this head needs {wanted}x{wanted}" if wanted else "") + ".",
            fix=f"Make the layer for {got:,} features; or give it {', or '.join(fix)}.",
            code=f"self.{name} = nn.Linear({got}, {_out(scene)})" if name.isidentifier() else
            f"nn.Linear({got}, {_out(scene)})",
            tried=(f"a picture of {fits[0]}x{fits[0]}: runs through",),
        )  # fmt: skip
    return Diagnosis(
        cause="picture-size",
        says=f"{says}" + (f"; this head needs {wanted}x{wanted}" if wanted else "") + ".",
        fix=f"Give it {', or '.join(fix)}; or make the layer for {got:,} features." if fits else
        f"Use {', or '.join(fix)}; or make the layer for {got:,} features.",
        code=resized_input(scene, fits[0]) if fits else "",
        sureness=Sureness.CERTAIN if fits else Sureness.LIKELY,
        tried=(f"a picture of {fits[0]}x{fits[0]}: runs through",) if fits else (),
    )  # fmt: skip


def person_holder(scene: Scene) -> bool:
    """Whether the failing layer is called by the person's own module, which is theirs to change."""
    holders = [call.module for call in scene.raised.calls[:-1] if not isinstance(call.module, nn.Sequential)]
    return bool(holders) and is_own_class(holders[-1])


def _in_python(path: str) -> str:
    """model.fc[0] for fc.0."""
    return "model" + "".join(f"[{part}]" if part.isdecimal() else f".{part}" for part in path.split("."))


def _by_tokens(scene: Scene, start: str, takes: int, got: int) -> Diagnosis | None:
    """A layer across the tokens of a picture: as many as its size makes."""
    x = scene.picture
    if x is None or x.dim() != 4:
        return None
    fits = fitting_sides(scene, (round(x.shape[-1] * math.sqrt(takes / got)),))
    if not fits:
        return None
    return Diagnosis(
        cause="picture-size",
        says=f"{start}: a picture of {x.shape[-2]}x{x.shape[-1]} makes {got:,} tokens.",
        fix=f"Pictures of {fits[0]}x{fits[0]} run through.",
        code=resized_input(scene, fits[0]),
        tried=(f"a picture of {fits[0]}x{fits[0]}: runs through",),
    )


def _out(scene: Scene) -> object:
    return getattr(scene.layer, "out_features", "...")


def _by_neighbour(scene: Scene, start: str, x: Tensor, takes: int, got: int) -> Diagnosis:
    maker = scene.maker_of(x)
    came = f", {maker}" if maker else ""
    if maker == "the input" or scene.before_all_weights:
        return Diagnosis(
            cause="linear-features",
            says=f"{start}: the input of {human_shape(tuple(x.shape))} is not as wide as the network takes it.",
            fix=f"Give it {takes:,} numbers in the last dimension, or make the layer for {got:,}.",
        )
    both = any(
        isinstance(module, nn.RNNBase) and module.bidirectional and 2 * module.hidden_size == got
        for _, module in scene.modules_called()
    )
    more = " A bidirectional layer gives twice its hidden size." if both else ""
    return Diagnosis(
        cause="linear-features",
        says=f"{start}{came}: what comes before gives {human_shape(tuple(x.shape))}.",
        fix=f"Make both the same: nn.Linear({got}, {_out(scene)}), or {takes:,} features from what comes before.{more}",
    )


def find_product(scene: Scene) -> Diagnosis | None:
    """Two matrices of the model's own code that cannot be multiplied."""
    if scene.recorder.function_name not in _PRODUCTS or isinstance(scene.layer, nn.Linear):
        return None
    given = scene.recorder.function_args
    tensors = [value for value in (*given[0], *given[1].values()) if isinstance(value, Tensor)][:2]
    if len(tensors) < 2 or any(t.dim() == 0 for t in tensors):
        return None
    a, b = tensors
    if scene.recorder.function_name == "linear":
        if b.dim() != 2 or a.shape[-1] == b.shape[-1]:
            return None
        mended = _turned_weight(scene, a, b)
        if mended is not None:
            return mended
        return Diagnosis(
            cause="linear-features",
            says=f"A weight of {human_shape(tuple(b.shape))} takes {counted(b.shape[-1], 'feature')} and received "
            f"{a.shape[-1]:,}: {scene.told(a)}.",
            fix=f"Make both {a.shape[-1]:,} or both {b.shape[-1]:,}.",
        )
    inner = (a.shape[-1], b.shape[-2] if b.dim() > 1 else b.shape[0])
    if scene.recorder.function_name == "scaled_dot_product_attention":
        inner = (a.shape[-1], b.shape[-1])
    lead = (a.shape[:-2], b.shape[:-2])
    batches_fit = all(m == n or 1 in (m, n) for m, n in zip(reversed(lead[0]), reversed(lead[1]), strict=False))
    pair = f"{scene.told(a)} and {scene.told(b)}"
    if inner[0] != inner[1]:
        exchanged = _exchanged(scene, a, b, f"A product of matrices needs {inner[0]:,} = {inner[1]:,}: {pair}.")
        if exchanged is not None:
            return exchanged
        turned = b.dim() > 1 and b.shape[-1] == a.shape[-1] and scene.recorder.function_name != "linear"
        return Diagnosis(
            cause="matrix-product",
            says=f"A product of matrices needs {inner[0]:,} = {inner[1]:,}: the operands are {pair}.",
            fix="Transpose the second: their last dimensions are equal."
            if turned
            else "The last dimension of the first has to be the second to last of the other.",
            code="a @ b.transpose(-2, -1)" if turned else "",
            sureness=Sureness.CERTAIN,
        )
    if not batches_fit:
        return Diagnosis(
            cause="matrix-product",
            says=f"The dimensions before the matrices differ: the operands are {pair}.",
            fix="All dimensions but the last two have to be equal, or 1.",
        )
    return None


def _exchanged(scene: Scene, a: Tensor, b: Tensor, says: str) -> Diagnosis | None:
    """The same product with its operands the other way round, or one of them transposed; what runs to the end."""
    name = scene.recorder.function_name
    if name not in ("mm", "matmul", "__matmul__", "bmm", "mv") or min(a.dim(), b.dim()) < 1:
        return None
    ways: list[tuple[str, str, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]]] = []
    first, second = _operands_written(scene, a, b)
    if b.shape[-1] == (a.shape[-2] if a.dim() > 1 else a.shape[0]):
        ways.append(("The operands have changed places.", f"{second} @ {first}", lambda x, y: (y, x)))
    if b.dim() > 1 and b.shape[-1] == a.shape[-1]:
        turn = f"{second}.transpose(-2, -1)" if b.dim() > 2 else f"{second}.t()"
        ways.append(
            (
                "Transpose the second: their last dimensions are equal.",
                f"{first} @ {turn}",
                lambda x, y: (x, y.transpose(-2, -1)),
            )
        )
    if a.dim() > 1 and a.shape[-2] == (b.shape[-2] if b.dim() > 1 else b.shape[0]):
        turn = f"{first}.transpose(-2, -1)" if a.dim() > 2 else f"{first}.t()"
        ways.append(
            (
                "Transpose the first: their first dimensions are equal.",
                f"{turn} @ {second}",
                lambda x, y: (x.transpose(-2, -1), y),
            )
        )
    for fix, code, change in ways:

        def replace(called: str, args: Sequence[Any], kwargs: Mapping[str, Any], change: Any = change) -> Any:
            pair = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)][:2]
            if called != name or len(pair) < 2 or any(not t.dim() for t in pair):
                return None
            x, y = pair
            if x.shape[-1] == (y.shape[-2] if y.dim() > 1 else y.shape[0]):
                return None
            return list(change(x, y)), {}

        if scene.trials.runs_replaced(replace, scene.args, scene.kwargs):
            return Diagnosis(
                cause="matrix-product", says=says, fix=fix, code=code,
                tried=("that, to the end of the forward: runs through",),
            )  # fmt: skip
    return None


def _operands_written(scene: Scene, a: Tensor, b: Tensor) -> tuple[str, str]:
    """The two operands as the failing line writes them."""
    statement = scene.frame.statement if scene.frame is not None else None
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return _in_brackets(node.left), _in_brackets(node.right)
        if isinstance(node, ast.Call) and called_name(node) == scene.recorder.function_name:
            if len(node.args) == 2:
                return _in_brackets(node.args[0]), _in_brackets(node.args[1])
            if len(node.args) == 1 and isinstance(node.func, ast.Attribute):
                return _in_brackets(node.func.value), _in_brackets(node.args[0])
    return scene.variable_of(a) or "a", scene.variable_of(b) or "b"


def _in_brackets(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, ast.BinOp | ast.UnaryOp | ast.IfExp) else text


def _turned_weight(scene: Scene, x: Tensor, weight: Tensor) -> Diagnosis | None:
    """F.linear transposes the weight itself, and got one that was transposed before; tried out."""
    if weight.shape[0] != x.shape[-1]:
        return None

    def turn(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Any] | None:
        given = kwargs.get("weight", args[1] if len(args) > 1 else None)
        at = args[0] if args else kwargs.get("input")
        if name != "linear" or not isinstance(given, Tensor) or not isinstance(at, Tensor) or given.dim() != 2:
            return None
        if at.shape[-1] == given.shape[1] or at.shape[-1] != given.shape[0]:
            return None
        return ([at, given.t(), *args[2:]], {k: v for k, v in kwargs.items() if k not in ("weight", "input")})

    if not scene.trials.runs_replaced(turn, scene.args, scene.kwargs):
        return None
    text = scene.frame.where.text if scene.frame is not None else ""
    written = next((one for one in (".t()", ".T", ".mT", ".transpose(0, 1)") if text.count(one) == 1), "")
    return Diagnosis(
        cause="linear-features",
        says=f"A weight of {human_shape(tuple(weight.shape))} takes {counted(weight.shape[-1], 'feature')} and "
        f"received {x.shape[-1]:,}: {scene.told(x)}. linear transposes the weight itself.",
        fix=f"Take out {written}." if written else "Hand it over transposed.",
        code=text.replace(written, "") if written else "weight = weight.t()",
        tried=("the weight the other way round: runs through",),
    )


CAUSES = (
    Cause(
        kinds=(
            "linear-features",
            "not-flattened",
            "batch-flattened",
            "batch-missing",
            "channels-second",
            "sequence-transposed",
            "picture-size",
        ),
        find=find_linear,
    ),
    Cause(kinds=("matrix-product", "linear-features"), find=find_product),
)
