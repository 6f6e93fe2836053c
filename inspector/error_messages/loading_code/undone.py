"""What makes loading come to nothing: letters stripped off the names, a copy updated, weights drawn anew behind it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from inspector.error_messages.loading_code.entry import Code, Fault, Found, in_place, written
from inspector.error_messages.loading_code.events import dotted, last_of

_INITIALISES = re.compile(r"init|reset|xavier|kaiming|he_normal|orthogonal", re.IGNORECASE)
_SETS = frozenset({"init_weights", "reset_parameters", "_init_weights", "initialize_weights", "initialise_weights"})


def _letters(code: Code) -> Iterator[Found]:
    """lstrip("module."), which takes off letters: "module.layer1" becomes "ayer1"."""
    if not code.loads:
        return
    for scope in code.scopes:
        for statement in scope.statements:
            for node in ast.walk(statement):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1):
                    continue
                prefix = node.args[0]
                if node.func.attr not in ("lstrip", "strip") or not isinstance(prefix, ast.Constant):
                    continue
                text = prefix.value
                if isinstance(text, str) and len(text) > 2 and text.endswith(".") and _is_innermost(statement, node):
                    new = f"{written(node.func.value)}.removeprefix({text!r})"
                    letters = ", ".join(dict.fromkeys(text))
                    yield Found(
                        node=node,
                        says=f"{node.func.attr}({text!r}) takes off every leading {letters}, not this prefix.",
                        why='Names that go on with one of these letters lose it: "module.layer1" becomes "ayer1".',
                        steps=("Take the prefix off as a whole.",),
                        patch=in_place(statement, node, new),
                    )


def _is_innermost(statement: ast.stmt, node: ast.AST) -> bool:
    """Whether no statement inside it, which is looked at by itself, has the node."""
    inner = (one for one in ast.walk(statement) if isinstance(one, ast.stmt) and one is not statement)
    return not any(one is node for part in inner for one in ast.walk(part))


def _copy_updated(code: Code) -> Iterator[Found]:
    """model.state_dict().update(...): the dict that is changed is a new one, made for this call."""
    for scope in code.scopes:
        for statement in scope.statements:
            node = getattr(statement, "value", None)
            if not (isinstance(statement, ast.Expr) and isinstance(node, ast.Call)):
                continue
            taken = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "update" else None
            if not (isinstance(taken, ast.Call) and last_of(taken.func) == "state_dict" and node.args):
                continue
            owner = written(taken.func.value) if isinstance(taken.func, ast.Attribute) else "model"
            yield Found(
                node=statement,
                says=f"{owner}.state_dict() is a new dict each time: updating it changes no weight of {owner}.",
                why="Its entries are exchanged, the model's own tensors stay; nothing is raised.",
                steps=("Load the state dict into the model.",),
                patch=f"{owner}.load_state_dict({written(node.args[0])})",
            )


def _drawn_anew(code: Code) -> Iterator[Found]:
    """model.apply(init_weights), model.init_weights(), model.fc.reset_parameters() behind loading."""
    for scope, load in code.loads:
        if not load.receiver:
            continue
        for did in scope.did:
            of_model = did.receiver == load.receiver or did.receiver.startswith(f"{load.receiver}.")
            if did.order <= load.order or not of_model or not isinstance(did.node, ast.Call):
                continue
            argument = dotted(did.node.args[0]) if did.node.args else ""
            applied = did.method == "apply" and _INITIALISES.search(argument) is not None
            if not applied and did.method not in _SETS:
                continue
            line = written(did.node)
            part = did.receiver if did.method != "apply" else load.receiver
            yield Found(
                node=did.node,
                says=f"{line} comes behind loading: {part} is drawn anew, and what the file had for it is gone.",
                why="Initialising writes over whatever the parameters hold; nothing is raised.",
                steps=("Initialise first, then load.",),
                patch=f"{line}\n{written(load.statement)}",
                if_so=did.receiver != load.receiver,
            )


FAULTS = (
    Fault(kind="prefix-by-letters", find=_letters),
    Fault(kind="state-dict-copy-updated", find=_copy_updated),
    Fault(kind="initialised-after-loading", find=_drawn_anew),
)
