"""A mask of attention that was made for other sizes: which line makes it, and of which size it should be."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

from torch import Tensor, nn

from inspector.doctor.causes.lines import RUNS, outcome
from inspector.doctor.frames import OwnFrame, source_line
from inspector.doctor.report import Diagnosis, SourceLine
from inspector.doctor.scene import Scene
from inspector.doctor.values_named import value_of
from inspector.units import human_shape


def other_mask(
    scene: Scene,
    layer: nn.MultiheadAttention,
    name: str,
    mask: Tensor,
    fits: set[tuple[int, ...]],
    sizes: tuple[int, int],
) -> Diagnosis:
    """name: what attention calls the mask. fits: the shapes it may have. sizes: (batch, length) of the query."""
    batch, length = sizes
    wanted = " or ".join(human_shape(shape) for shape in sorted(fits, key=len))
    got = tuple(mask.shape)
    says = f"The {name} of {scene.path} has to be {wanted} and is {human_shape(got)}"
    if name == "attn_mask" and got == (batch, batch) and batch != length:
        says += f": it is made of the batch ({batch:,}) and not of the length ({length:,})"
    elif name == "key_padding_mask" and got == (length, batch):
        says += ": it is transposed"
    made = _made(scene, mask)
    line = made[1] if made is not None else None
    fix = f"Make it of {wanted} there." if line is not None else f"Make it of {wanted}, where it is made."
    if not layer.batch_first:
        fix = "It was made without batch_first=True and takes length x batch x width: give it that where the batch "
        fix += "stands first."
    code, tried = "", ()  # type: tuple[str, tuple[str, ...]]
    if made is not None and layer.batch_first:
        assigned, _ = made
        for other in _otherwise(assigned, got, batch, length, scene):
            came = outcome(scene, lambda one, new=other: [new], at=assigned)  # type: ignore[misc]
            if came == "":
                code, tried = ast.unparse(other), (RUNS,)
                break
    return Diagnosis(cause="attention-mask", says=f"{says}.", fix=fix, code=code, tried=tried, change=line)


def _made(scene: Scene, mask: Tensor) -> tuple[ast.Assign, SourceLine] | None:
    """The last assignment, before the failing line, to a name that it uses for a tensor of this shape."""
    frame = scene.frame
    if frame is None or frame.statement is None or frame.function_node is None:
        return None
    names = [n.id for n in ast.walk(frame.statement) if isinstance(n, ast.Name)]
    alike = [
        name
        for name in dict.fromkeys(names)
        if isinstance(value := frame.variables.get(name), Tensor) and value.shape == mask.shape
    ]
    exact = [name for name in alike if frame.variables[name] is mask] or alike
    if len(exact) != 1:
        return None
    found = [
        n
        for n in ast.walk(frame.function_node)
        if isinstance(n, ast.Assign)
        and n.lineno < frame.statement.lineno
        and any(isinstance(t, ast.Name) and t.id == exact[0] for t in n.targets)
    ]
    if not found:
        return None
    last = max(found, key=lambda one: one.lineno)
    return last, source_line(frame.filename, last.lineno)


def _otherwise(
    assigned: ast.Assign, got: tuple[int, ...], batch: int, length: int, scene: Scene
) -> Iterator[ast.Assign]:
    """The same line with each x.size(i) and x.shape[i] of the wrong size taken from the dimension of the right one."""
    frame = scene.frame
    if frame is None:
        return
    for wrong, right in ((batch, length), (length, batch)):
        if wrong not in got or wrong == right:
            continue
        new = copy.deepcopy(assigned)
        changed = sum(_turn(node, wrong, right, frame) for node in ast.walk(new.value))
        if changed:
            yield new
    if len(got) == 2:
        new = copy.deepcopy(assigned)
        new.value = ast.Call(ast.Attribute(new.value, "t", ast.Load()), [], [])
        yield ast.fix_missing_locations(new)


def _turn(node: ast.AST, wrong: int, right: int, frame: OwnFrame) -> bool:
    """In place: the one index that gives the wrong size becomes the one that gives the right."""
    call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size"
    if call and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        return _replaced(node.func.value, node.args, 0, wrong, right, frame)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        held: list[ast.expr] = [node.slice]
        done = _replaced(node.value.value, held, 0, wrong, right, frame)
        node.slice = held[0]
        return done
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
        tensor = value_of(node.args[0], frame.variables)
        if isinstance(tensor, Tensor) and tensor.dim() and len(tensor) == wrong and right in tensor.shape:
            at = list(tensor.shape).index(right)
            node.func = ast.Attribute(node.args[0], "size", ast.Load())
            node.args = [ast.Constant(at)]
            ast.fix_missing_locations(node)
            return True
    return False


def _replaced(holder: ast.expr, places: list[ast.expr], at: int, wrong: int, right: int, frame: OwnFrame) -> bool:
    index, tensor = places[at], value_of(holder, frame.variables)
    number = index.value if isinstance(index, ast.Constant) else None
    if not isinstance(number, int) or not isinstance(tensor, Tensor) or not -tensor.dim() <= number < tensor.dim():
        return False
    shape: Sequence[int] = tuple(tensor.shape)
    if shape[number] != wrong or right not in shape:
        return False
    places[at] = ast.copy_location(ast.Constant(shape.index(right)), index)
    return True
