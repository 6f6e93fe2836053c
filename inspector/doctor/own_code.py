"""A person's own network, traced in the process where their code runs, and what their source says besides.

As `architectures/user_code.py`: whoever calls has asked the person first, and the process contains accidents, not
malice. What comes back is checked like anything from outside.
"""

from __future__ import annotations

import ast
import dataclasses
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.architectures.report_of_code import answer, report_of_code
from inspector.architectures.user_code import SECONDS, Factory, parse_factory
from inspector.doctor.building import not_built
from inspector.doctor.loss_pairs import MISMATCH, find_mismatch
from inspector.doctor.report import SourceLine, Trace
from inspector.doctor.run import Wish
from inspector.findings import Finding, FindingKind, Severity, ranked
from inspector.side_files import read_bytes, read_text

if TYPE_CHECKING:
    from torch import Tensor

REPLACED = FindingKind("replaced-after-optimizer", Severity.WARNING, "A layer is replaced after its optimizer was made")

_MOST_INPUT_NBYTES = 4 << 30


def trace_code(
    text: str,
    wish: Wish,
    *,
    folder: Path | None = None,
    seconds: float = SECONDS,
    memory_nbytes: int | None = None,
) -> Trace:
    """Run the factory and trace one forward pass of what it returns. Runs the person's code.

    folder, seconds, memory_nbytes: as `report_of_code`.
    Raises as `target_of_code`, and ModelError where nothing tells what the model takes.
    """
    factory = parse_factory(text)
    with tempfile.TemporaryDirectory(prefix="inspector-input-") as private:
        arguments = {
            "shape": None if wish.shape is None else list(wish.shape),
            "tensors": _written(wish.tensors or {}, Path(private)),
            "input_from": wish.input_from,
            "batch": wish.batch,
            "training": wish.training,
        }
        function = f"{__name__}:trace_built"
        trace = report_of_code(
            text, Trace, function, arguments, folder=folder, seconds=seconds, memory_nbytes=memory_nbytes,
            raised=lambda answer: not_built(answer, factory, folder or Path.cwd(), training=wish.training),
        )  # fmt: skip
    return with_source(trace, factory, folder or Path.cwd())


def with_source(trace: Trace, factory: Factory, folder: Path) -> Trace:
    """The trace of what a factory built, with what its source says besides."""
    # Its folders are nobody's business where the report is pasted.
    file = Path(factory.where).name
    replaced: tuple[Finding, ...] = ()
    failure = trace.failure
    if factory.is_file:
        text = read_text(folder / factory.where, "source")
        replaced = (*find_replaced(text, file), *find_mismatch(text, file, trace.ends))
        # What the forward itself was seen to do is told already.
        seen = any(f.id == MISMATCH.id for f in trace.findings)
        if seen or (trace.diagnosis is not None and trace.diagnosis.cause == "loss-values"):
            replaced = tuple(f for f in replaced if f.id != MISMATCH.id)
        # In a package's forward the person has nothing to mend: where did they set the layer?
        if failure is not None and failure.stack and failure.line is not None and "/" in failure.line.file:
            path = next((call.path for call in trace.calls if call.number == failure.stack[-1]), "")
            failure = dataclasses.replace(failure, line=line_that_sets(text, file, path) or failure.line)
    label = f"code:{file}:{factory.name}"
    findings = ranked((*trace.findings, *replaced))
    return dataclasses.replace(trace, target=label, findings=findings, failure=failure)


def line_that_sets(text: str, file: str, path: str) -> SourceLine | None:
    """Where a source sets the module of that path, or one that it lies in, on a model: model.fc = ... for fc.0."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    found: tuple[int, SourceLine] | None = None
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else []:
            name, set_path = _dotted(target)
            inside = f"{path}.".startswith(f"{set_path}.")
            if (
                isinstance(node, ast.Assign)
                and name
                and set_path
                and inside
                and (not found or len(set_path) > found[0])
            ):
                line = text.splitlines()[node.lineno - 1].strip()[:400]
                found = len(set_path), SourceLine(file=file, line=node.lineno, text=line)
    return found[1] if found is not None else None


def trace_built(
    model: Any,
    *,
    label: str,
    shape: Sequence[int] | None,
    tensors: Sequence[Sequence[Any]],
    input_from: str,
    batch: int,
    training: bool,
) -> dict[str, Any]:
    """What `code_runner.hand_over` calls in the other process."""
    from inspector.doctor.run import trace_known

    wish = Wish(
        shape=tuple(shape) if shape else None,
        tensors={name: _read(*rest) for name, *rest in tensors},
        input_from=input_from,
        batch=batch,
        training=training,
    )
    return answer(model, label, lambda module: trace_known(module, label, None, wish))


def _written(tensors: Mapping[str, Tensor], folder: Path) -> list[list[Any]]:
    """[name, file, type, shape] of each, its values in a file of ours."""
    import torch

    made = []
    for index, (name, tensor) in enumerate(tensors.items()):
        place = folder / f"input{index}"
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        place.write_bytes(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
        made.append([name, str(place), str(tensor.dtype).removeprefix("torch."), list(tensor.shape)])
    return made


def _read(place: str, dtype: str, shape: Sequence[int]) -> Tensor:
    import torch

    raw = bytearray(read_bytes(place, most_nbytes=_MOST_INPUT_NBYTES))
    kind: torch.dtype = getattr(torch, dtype)
    return torch.frombuffer(raw, dtype=kind).reshape(tuple(shape)) if raw else torch.empty(tuple(shape), dtype=kind)


def find_replaced(text: str, file: str) -> Iterator[Finding]:
    """Layers of a model that are set anew behind the line that hands its parameters to an optimizer.

    By the source alone and within one function, since the optimizer is seldom there to be asked.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = text.splitlines()
    scopes = [tree, *(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))]
    for scope in scopes:
        given: dict[str, int] = {}
        for statement in _in_order(scope):
            for name in _given_to_optimizer(statement):
                given[name] = statement.lineno
            for target in statement.targets if isinstance(statement, ast.Assign) else []:
                name, path = _dotted(target)
                if name in given and path and isinstance(statement, ast.Assign) and _makes_layer(statement.value):
                    where = SourceLine(file=file, line=statement.lineno, text=lines[statement.lineno - 1].strip()[:400])
                    yield REPLACED.found(
                        f"{name}.{path} is replaced after the optimizer took {name}.parameters() in line "
                        f"{given[name]}: it goes on with the old weights ({file}, line {where.line}).",
                        subjects=(f"{name}.{path}",),
                        evidence=(("file", file), ("line", where.line), ("text", where.text)),
                        remedy="Replace layers first, and make the optimizer after that.",
                    )


def _in_order(scope: ast.AST) -> list[ast.stmt]:
    """The statements of one scope by line, without those of functions inside it."""
    found: list[ast.stmt] = []
    waiting: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.stmt):
            found.append(node)
        waiting.extend(ast.iter_child_nodes(node))
    return sorted(found, key=lambda statement: statement.lineno)


def _given_to_optimizer(statement: ast.stmt) -> Iterator[str]:
    """Names in NAME.parameters() among the arguments of what is assigned to something called an optimizer."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return
    called = ast.unparse(statement.value.func)
    if "optim" not in called.lower() and called.rpartition(".")[2] not in ("SGD", "Adam", "AdamW", "RMSprop", "LBFGS"):
        return
    for node in ast.walk(statement.value):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("parameters", "named_parameters"):  # fmt: skip  # noqa: E501
            name, path = _dotted(node.func.value)
            if name and not path:
                yield name


def _dotted(node: ast.expr) -> tuple[str, str]:
    """("model", "head.1") of model.head[1]; ("", "") of what is no such name."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            parts.append(str(node.slice.value))
        else:
            break
        node = node.value
    return (node.id, ".".join(reversed(parts))) if isinstance(node, ast.Name) else ("", "")


def _makes_layer(value: ast.expr) -> bool:
    called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    return called.rpartition(".")[2][:1].isupper() or "Parameter" in called
