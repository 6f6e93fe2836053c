"""torch.cat and stack of tensors that do not fit each other; a fix is tried out to the end of the forward."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from inspector.doctor.causes.entry import Cause
from inspector.doctor.causes.shapes import by_multiple
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene

_NAMES = ("cat", "concat", "concatenate")
_STACKS = ("stack", "hstack", "vstack", "dstack")


@dataclass(frozen=True, slots=True)
class Fix:
    """change: of (tensors, dimension); None where it does not apply. says: what to do. code: for these tensors."""

    says: str
    code: str
    change: Callable[[list[Tensor], int], tuple[list[Tensor], int] | None]


def find_cat(scene: Scene) -> Diagnosis | None:
    """torch.cat or stack of tensors that differ elsewhere."""
    name = scene.recorder.function_name
    stacked = scene.operator == "stack" or (name in _STACKS and scene.operator != "cat")
    if scene.operator != "cat" and not stacked and name not in _NAMES:
        return None
    tensors = scene.operands
    if len(tensors) < 2:
        given = scene.recorder.function_args[0]
        listed = given[0] if given else scene.recorder.function_args[1].get("tensors", ())
        tensors = [t for t in listed if isinstance(t, Tensor)] if isinstance(listed, list | tuple) else []
    if len(tensors) < 2:
        return None
    told = "; ".join(scene.told(t) for t in tensors[:4])
    says = f"{'stack' if stacked else 'cat'} of tensors that do not fit in {scene.path}: {told}."
    if stacked:
        if len({tuple(t.shape) for t in tensors}) < 2:
            return None
        return Diagnosis(cause="cat-of-shapes", says=says, fix="stack takes equal shapes: pad them, or use torch.cat.")
    ranks, dim = {t.dim() for t in tensors}, _cat_dim(scene)
    rank = max(ranks)
    axis = dim % rank if rank and -rank <= dim < rank else 0
    if len(ranks) == 1:
        differing = [i for i in range(rank) if i != axis and len({t.shape[i] for t in tensors}) > 1]
        if not differing:
            return None
        found = by_multiple(scene, says) if rank == 4 and min(differing) >= 2 else None
        if found is not None:
            return found
        fixes = list(_of_one_rank(scene, tensors, axis, differing))
    else:
        fixes = list(_of_two_ranks(scene, tensors, axis))
    return _tried(scene, says, fixes) or Diagnosis(
        cause="cat-of-shapes",
        says=says,
        fix=f"All dimensions but dim={axis} have to be equal.",
        sureness=Sureness.CERTAIN,
    )


def _tried(scene: Scene, says: str, fixes: Sequence[Fix]) -> Diagnosis | None:
    """The first fix with which the forward runs to its end; else the first there is, told as untried."""
    for fix in fixes:

        def replace(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], fix: Fix = fix) -> Any:
            listed = args[0] if args else kwargs.get("tensors")
            if name not in _NAMES or not isinstance(listed, list | tuple):
                return None
            dim = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis", 0))
            if not all(isinstance(t, Tensor) for t in listed) or not isinstance(dim, int) or _fits(listed, dim):
                return None
            made = fix.change(list(listed), dim)
            return None if made is None else (made, {})

        if scene.trials.runs_replaced(replace, scene.args, scene.kwargs):
            return Diagnosis(
                cause="cat-of-shapes", says=says, fix=fix.says, code=fix.code,
                tried=("that, to the end of the forward: runs through",),
            )  # fmt: skip
    if not fixes:
        return None
    return Diagnosis(
        cause="cat-of-shapes", says=says, fix=f"{fixes[0].says} What comes behind does not take it so, either.",
        code=fixes[0].code,
    )  # fmt: skip


def _fits(tensors: Sequence[Tensor], dim: int) -> bool:
    if len({t.dim() for t in tensors}) > 1 or not tensors[0].dim():
        return False
    axis = dim % tensors[0].dim()
    return all(len({t.shape[i] for t in tensors}) == 1 for i in range(tensors[0].dim()) if i != axis)


def _of_one_rank(scene: Scene, tensors: list[Tensor], axis: int, differing: list[int]) -> Iterator[Fix]:
    rank, names = tensors[0].dim(), _written(scene, tensors)
    largest = [max(t.shape[i] for t in tensors) if i in differing else -1 for i in range(rank)]
    at = next((i for i, t in enumerate(tensors) if all(t.shape[d] in (1, largest[d]) for d in differing)), None)
    if at is not None and any(tensors[at].shape[d] == 1 for d in differing):
        other = next(i for i, t in enumerate(tensors) if all(t.shape[d] == largest[d] for d in differing))
        sizes = [f"{names[other]}.size({i})" if n != -1 else "-1" for i, n in enumerate(largest)]

        def expanded(given: list[Tensor], dim: int) -> tuple[list[Tensor], int] | None:
            if len({t.dim() for t in given}) > 1 or given[0].dim() != rank:
                return None
            most = [max(t.shape[i] for t in given) for i in range(rank)]
            made = [t.expand([-1 if i == dim % rank else n for i, n in enumerate(most)]) for t in given]
            return made, dim

        yield Fix(
            "cat repeats nothing by itself: expand the one that is there once.",
            f"{names[at]}.expand({', '.join(sizes)})",
            expanded,
        )
    if len(differing) == 1:
        yield Fix(
            f"Only dimension {differing[0]} differs: join them there.",
            f"torch.cat([{', '.join(names)}], dim={differing[0]})",
            lambda given, dim: (given, differing[0]),
        )
    if rank == 3:
        order = [t.shape for t in tensors]
        odd = next((i for i, s in enumerate(order) if (s[0], s[2], s[1])[axis - rank] != s[axis] or s != order[0]), 0)
        for i in dict.fromkeys((odd, 0, len(tensors) - 1)):
            yield Fix(
                "Its last two dimensions have changed places.",
                f"{names[i]}.transpose(1, 2)",
                lambda given, dim, i=i: (  # type: ignore[misc]
                    [t.transpose(1, 2) if j == i and t.dim() == 3 else t for j, t in enumerate(given)],
                    dim,
                ),
            )
    if rank == 4 and min(differing) >= 2:
        small = min(range(len(tensors)), key=lambda i: tensors[i].shape[-1] * tensors[i].shape[-2])
        large = max(range(len(tensors)), key=lambda i: tensors[i].shape[-1] * tensors[i].shape[-2])

        def resized(given: list[Tensor], dim: int) -> tuple[list[Tensor], int] | None:
            if any(t.dim() != 4 for t in given):
                return None
            size = max((tuple(t.shape[2:]) for t in given), key=lambda one: one[0] * one[1])
            return [t if tuple(t.shape[2:]) == size else t.new_zeros((*t.shape[:2], *size)) for t in given], dim

        yield Fix(
            "Heights and widths have to be equal: interpolate one to the other's size.",
            f"{names[small]} = torch.nn.functional.interpolate({names[small]}, size={names[large]}.shape[2:])",
            resized,
        )


def _of_two_ranks(scene: Scene, tensors: list[Tensor], axis: int) -> Iterator[Fix]:
    names = _written(scene, tensors)
    low, high = min(t.dim() for t in tensors), max(t.dim() for t in tensors)
    big = next(i for i, t in enumerate(tensors) if t.dim() == high)
    small = next(i for i, t in enumerate(tensors) if t.dim() == low)
    a, b = tensors[big], tensors[small]

    def each(rank: int, change: Callable[[Tensor], Tensor]) -> Callable[[list[Tensor], int], Any]:
        def changed(given: list[Tensor], dim: int) -> tuple[list[Tensor], int] | None:
            return [change(t) if t.dim() == rank else t for t in given], dim

        return changed

    ones = all(n == 1 for n in a.shape[low:])
    flat = Fix(
        f"The {'x'.join(map(str, a.shape[low:]))} behind is one value each: flatten it before they meet."
        if ones
        else "Flatten the larger one before they meet.",
        f"{names[big]}.flatten(1)",
        each(high, lambda t: t.flatten(1)),
    )
    if low == 2 and ones:
        yield flat
    if low == 2 and high == 3 and a.shape[0] != b.shape[0] == a.shape[1]:
        yield Fix(
            "A recurrent layer's state is layers x batch x width: take its last layer.",
            f"{names[big]}[-1]",
            each(high, lambda t: t[-1]),
        )
    if low == 1 and high == 2:
        yield Fix(
            "One number for each sample is a column.", f"{names[small]}.unsqueeze(1)", each(1, lambda t: t.unsqueeze(1))
        )
    if low == 2 and high == 4:

        def spread(given: list[Tensor], dim: int) -> tuple[list[Tensor], int] | None:
            size = next(t.shape[2:] for t in given if t.dim() == 4)
            return [t[:, :, None, None].expand(-1, -1, *size) if t.dim() == 2 else t for t in given], dim

        yield Fix(
            "Repeat the vector over height and width.",
            f"{names[small]}[:, :, None, None].expand(-1, -1, *{names[big]}.shape[2:])",
            spread,
        )
        yield Fix("Pool the map to a vector first.", f"{names[big]}.mean((2, 3))", each(4, lambda t: t.mean((2, 3))))
    if low == 2 and high == 3:
        if axis == 1:
            yield Fix(
                "The smaller one is one more entry of the sequence.",
                f"{names[small]}.unsqueeze(1)",
                each(2, lambda t: t.unsqueeze(1)),
            )

        def repeated(given: list[Tensor], dim: int) -> tuple[list[Tensor], int] | None:
            length = next(t.shape[1] for t in given if t.dim() == 3)
            return [t[:, None].expand(-1, length, -1) if t.dim() == 2 else t for t in given], dim

        yield Fix(
            "Repeat the vector at each entry of the sequence.",
            f"{names[small]}.unsqueeze(1).expand(-1, {names[big]}.size(1), -1)",
            repeated,
        )
    if low == 2:
        yield flat
    if high - low == 1:
        for i in range(high):
            if (b.shape[:i], b.shape[i:]) == (a.shape[:i], a.shape[i + 1 :]) or i == axis:
                yield Fix(
                    "The smaller one lacks a dimension.",
                    f"{names[small]}.unsqueeze({i})",
                    each(low, lambda t, i=i: t.unsqueeze(i)),  # type: ignore[misc]
                )


def _written(scene: Scene, tensors: Sequence[Tensor]) -> list[str]:
    """What the failing line calls each: the entries of its list, else variables."""
    statement = scene.frame.statement if scene.frame is not None else None
    for node in ast.walk(statement) if statement is not None else ():
        listed = node.args[0] if isinstance(node, ast.Call) and node.args else None
        if isinstance(listed, ast.List | ast.Tuple) and len(listed.elts) == len(tensors):
            return [ast.unparse(one) for one in listed.elts]
    return [scene.variable_of(t) or "abcdefgh"[i % 8] for i, t in enumerate(tensors)]


def _cat_dim(scene: Scene) -> int:
    args, kwargs = scene.raised.operands if scene.operator == "cat" else scene.recorder.function_args
    dim = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis", 0))
    return dim if isinstance(dim, int) else 0


CAUSES = (Cause(kinds=("cat-of-shapes", "size-not-divisible"), find=find_cat),)
