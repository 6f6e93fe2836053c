"""A line that a diagnosis offers, tried to the end before it is printed; one that does not mend is no line."""

from __future__ import annotations

import ast
from dataclasses import replace

from inspector.doctor.frames import own_frames
from inspector.doctor.report import Diagnosis
from inspector.doctor.rewriting import Change, rewritten, statements_of
from inspector.doctor.scene import Scene

RUNS = "that, to the end of the forward: runs through"


def tried_line(scene: Scene, found: Diagnosis) -> Diagnosis:
    """With what came of putting its assignments in front of the failing statement.

    Lines that are no assignment to what the forward knows (a layer made otherwise, the call of the model) are advice
    as they stand and are left.
    """
    frame = scene.frame
    if not found.code or found.tried or frame is None or frame.installed:
        return found
    statements = statements_of(found.code)
    if not statements or not all(_is_known(one, scene) for one in statements):
        return found
    made = statements
    came = outcome(scene, lambda one: [*made, one])
    if came is None:
        return found
    if came == "":
        return replace(found, tried=(RUNS,))
    if came == "here":
        # It fails in the same place: no line to be copied.
        return replace(found, code="")
    return replace(found, tried=(f"that: gets as far as {came}, which fails for another reason",))


def outcome(scene: Scene, change: Change, *, at: ast.stmt | None = None) -> str | None:
    """What comes of the forward with a statement of the failing function changed: "" for one that runs through, "here"
    where it fails as before, else the line that fails; None where it cannot be tried."""
    frame = scene.frame
    if frame is None or not scene.trials.left:
        return None
    with rewritten(frame, change, at=at) as done:
        if not done:
            return None
        error = scene.trials.error_with_numbers(scene.args, scene.kwargs)
    if error is None:
        return ""
    lines = own_frames(error.error.__traceback__)
    where = lines[-1].where if lines else None
    error.__traceback__ = error.error.__traceback__ = None
    if (where is None or where == frame.where) and str(error.error) == scene.text:
        return "here"
    if where is None:
        return type(error.error).__name__
    return f"{where.file}, line {where.line}"


def _is_known(statement: ast.stmt, scene: Scene) -> bool:
    """Whether it sets a variable of the failing function, or an attribute of what is called self."""
    frame = scene.frame
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or frame is None:
        return False
    target = statement.targets[0]
    if isinstance(target, ast.Tuple):
        names = [one.id for one in target.elts if isinstance(one, ast.Name) and one.id != "_"]
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        return "self" in frame.variables and hasattr(frame.variables["self"], target.attr)
    else:
        names = [target.id] if isinstance(target, ast.Name) else []
    used = {node.id for node in ast.walk(frame.statement) if isinstance(node, ast.Name)} if frame.statement else set()
    read = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)} - {"torch", "F", "nn"}
    return (
        bool(names) and all(name in frame.variables and name in used for name in names) and read <= set(frame.variables)
    )
