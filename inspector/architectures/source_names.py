"""What in a text of Python could make the network: classes and functions by their names, without running any of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from inspector.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Makers:
    """names: of classes and functions at the top of the text, in its order. likely: the one that nothing else in the
    text uses, where there is one alone; "" where somebody has to say."""

    names: tuple[str, ...]
    likely: str


def find_makers(text: str) -> Makers:
    """Raises UsageError for a text that is no Python, with the line, and for one that defines nothing."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        where = f"line {error.lineno}" if error.lineno else "it"
        raise UsageError(
            f"This is no Python: {error.msg} in {where}.", hint="Paste whole lines, as they are."
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"This is no Python that can be read: {error}.") from error
    defined = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    names = tuple(dict.fromkeys(node.name for node in defined if not node.name.startswith("_")))
    if not names:
        raise UsageError(
            "There is no class and no function in it.", hint="Paste the class of the network, with its imports."
        )
    # Its own name inside itself (super(Net, self)) is no use by others, and neither is a line below that tries it out.
    used = {name for node in defined for name in _names_in(node) if name != node.name}
    outermost = [name for name in names if name not in used]
    return Makers(names=names, likely=outermost[0] if len(outermost) == 1 else "")


def _names_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def offered_names(text: str) -> tuple[str, ...]:
    """What of a text is worth being named as the network, likeliest first: classes of modules, functions without
    arguments, models that stand at its top. Raises as `find_makers`."""
    makers = find_makers(text)
    tree = ast.parse(text)
    modules: dict[str, None] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base) for base in node.bases]
            if any(
                base in modules or base.rpartition(".")[2].endswith(("Module", "Sequential", "Model")) for base in bases
            ):
                modules[node.name] = None
    functions = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and len(node.args.args) == len(node.args.defaults)
        and any(isinstance(inner, ast.Return) and inner.value is not None for inner in ast.walk(node))
        and _names_in(node) & {*modules, "nn", "torchvision", "timm", "models"}
        and not node.name.startswith("_")
    ]
    values = [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name) and ast.unparse(node.value.func) in (*modules, *functions)
    ]
    inner = {
        name for node in tree.body if isinstance(node, ast.ClassDef) for name in _names_in(node) if name != node.name
    }
    outer = [name for name in modules if name not in inner]
    found = [*functions, *outer, *values, *(name for name in modules if name in inner)]
    return tuple(dict.fromkeys([*(one for one in found if one == makers.likely), *found]))
