"""One fault of loading code, and what its search looks at."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from inspector.checkpoint.types import Checkpoint
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.error_messages.loading_code.events import Load, Read, Save, Scope, Taken, dotted
from inspector.error_messages.loading_code.snippet import Snippet


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """says, why: sentences. node: where. patch: the corrected line or lines. if_so: a fault only under the condition
    that `says` names, since the file or the rest of the script would have to tell."""

    node: ast.AST
    says: str
    why: str
    steps: tuple[str, ...]
    patch: str = ""
    if_so: bool = False


class Code:
    """The whole snippet, and the file beside it where there is one."""

    def __init__(self, snippet: Snippet, scopes: tuple[Scope, ...], checkpoint: Checkpoint | None) -> None:
        self.snippet, self.scopes, self.checkpoint = snippet, scopes, checkpoint
        self._models: dict[int, frozenset[str]] = {}

    @cached_property
    def loads(self) -> tuple[tuple[Scope, Load], ...]:
        """Of all scopes, each with its own."""
        return tuple((scope, load) for scope in self.scopes for load in scope.loads)

    @cached_property
    def saves(self) -> tuple[Save, ...]:
        """Of all scopes."""
        return tuple(save for scope in self.scopes for save in scope.saves)

    @cached_property
    def taken(self) -> tuple[Taken, ...]:
        """Of all scopes."""
        return tuple(one for scope in self.scopes for one in scope.taken)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name and attribute in it."""
        return frozenset(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(self.snippet.tree)
            if isinstance(node, ast.Name | ast.Attribute)
        )

    @cached_property
    def words(self) -> frozenset[str]:
        """Every text constant in it."""
        nodes = ast.walk(self.snippet.tree)
        return frozenset(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))

    @cached_property
    def wrapper_of_file(self) -> str | None:
        """The wrapper's segment that all names of the file's weights begin with, "" for none; None without a file."""
        state = self.checkpoint.weights if self.checkpoint is not None else None
        if state is None or not state.tensors:
            return None
        firsts = {tensor.name.partition(".")[0] for tensor in state.tensors}
        return firsts.pop() if len(firsts) == 1 and firsts <= WRAPPER_SEGMENTS else ""

    def save_of(self, read: Read | None) -> Save | None:
        """The line of this snippet that wrote what is read."""
        return next((save for save in self.saves if read is not None and save.path and save.path == read.path), None)

    @cached_property
    def attributes(self) -> dict[str, set[str]]:
        """Name -> everything that is asked of it."""
        found: dict[str, set[str]] = {}
        for node in ast.walk(self.snippet.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
                found.setdefault(dotted(node.value), set()).add(node.attr)
        return found

    def models(self, scope: Scope) -> frozenset[str]:
        """Names that are used as models are: loaded, called, put into a mode, asked for parameters."""
        known = self._models.get(id(scope))
        if known is None:
            ways = ("eval", "train", "parameters", "named_parameters", "zero_grad", "modules", "children")
            used = {one.receiver for one in scope.did if one.method in ways}
            known = self._models[id(scope)] = frozenset(used | {load.receiver for load in scope.loads})
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One entry of `FAULTS`. kind: stable and kebab-case. find: yields what it did find."""

    kind: str
    find: Callable[[Code], Iterator[Found]]


def written(node: ast.AST) -> str:
    """As Python writes it; "..." where it is too deep to be written."""
    try:
        return ast.unparse(node)
    except RecursionError:
        return "..."


def with_argument(load: Load, argument: str) -> str:
    """The same call with another first argument."""
    rest = [written(one) for one in load.node.args[1:]]
    rest += [f"{one.arg}={written(one.value)}" for one in load.node.keywords if one.arg not in (None, "state_dict")]
    return f"{written(load.node.func)}({', '.join([argument, *rest])})"


def in_place(statement: ast.stmt, old: ast.AST, new: str) -> str:
    """The statement with one of its expressions written otherwise."""
    return written(statement).replace(written(old), new, 1)


def is_assigned_to(statement: ast.stmt) -> list[str]:
    """Names that a statement sets."""
    if not isinstance(statement, ast.Assign):
        return []
    return [dotted(target) for target in statement.targets]
