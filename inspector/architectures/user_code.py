"""The names and shapes of a model that a person's own code builds: code:model.py:build, code:package.module:factory.

This runs that code, so whoever calls has asked the person first. It runs in another process with this Python, in the
person's folder, and for a limited time. That contains accidents, not malice: it can do whatever the person can.
"""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote

from inspector.architectures.code_runner import digest_of_shapes
from inspector.architectures.following import Setting, followed
from inspector.architectures.index import Law
from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.checkpoint.types import Shape
from inspector.errors import LimitExceeded, ModelError, ReadError, UsageError
from inspector.installed import require
from inspector.side_files import PathKind, kind_of_path, read_bytes, shown_name

PREFIX = "code:"
FORM = (
    "Write code:model.py:build or code:package.module:factory, the name of a class, a function or a model in it, with "
    "arguments as ?num_classes=4&depth=18."
)
ALONE = "Run the factory by itself in the same folder and Python to see it fail."
SECONDS = 120.0
_MOST_ANSWER = 64 * 1024 * 1024  # bytes
_MOST_TENSORS = 300_000
_MOST_DIMENSIONS = 64
_NUMBER = r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:e[-+]?[0-9]{1,3})?"
_HELD = re.compile(rf"|computed:[a-z-]{{1,40}}|constant:{_NUMBER}(?:,{_NUMBER}){{0,15}}")
_MOST_SIZES = 16
_PATIENCE = 2.0  # seconds
_SHOWN = 2_000  # characters of what the code printed
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")

Literal = str | int | float | bool | None | list[object] | dict[object, object] | tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Factory:
    """What to run. where: a path that ends in .py, or a module's dotted name. name: in it. arguments: by keyword."""

    text: str
    where: str
    name: str
    is_file: bool
    arguments: Mapping[str, object] = field(default_factory=dict)


def is_code(text: str) -> bool:
    """Whether a target is written as code to run."""
    return text.strip().startswith(PREFIX)


def parse_factory(text: str) -> Factory:
    """'code:model.py:build?num_classes=4' taken apart; nothing is run. Raises UsageError."""
    whole = text.strip()
    path, _, query = whole.removeprefix(PREFIX).partition("?")
    where, _, name = path.rpartition(":")
    if not where or not _DOTTED.fullmatch(name):
        raise UsageError(f'"{whole}" names no factory.', hint=FORM)
    is_file = where.endswith(".py")
    if not is_file and not _DOTTED.fullmatch(where):
        raise UsageError(f'"{where}" is neither a Python file nor a module.', hint=FORM)
    arguments: dict[str, object] = {}
    for pair in filter(None, query.split("&")):
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier() or key in arguments:
            raise UsageError(f'"{pair}" is no argument.', hint=FORM)
        arguments[key] = _literal(unquote(value))
    return Factory(text=whole, where=where, name=name, is_file=is_file, arguments=arguments)


def _literal(text: str) -> object:
    """A Python literal; a plain word is a string, so that ?variant=small needs no quotes."""
    try:
        value = ast.literal_eval(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        if re.fullmatch(r"[A-Za-z_][\w.-]*", text):
            return {"true": True, "false": False}.get(text, text)
        raise UsageError(
            f'"{text}" is no literal.', hint="Arguments are numbers, strings, True, False, None, or lists of these."
        ) from error
    return value


def target_of_code(
    text: str,
    *,
    folder: Path | None = None,
    seconds: float = SECONDS,
    memory_nbytes: int | None = None,
    shapes: Sequence[Shape] = (),
) -> Target:
    """Run the factory and describe what it returns. Runs the person's code.

    folder: where it runs, the current one if None. memory_nbytes: what it may write to at most, torch's own gigabyte
    included; unlimited if None. shapes: of what is to be loaded (`following.shapes_of`). Where they are others and show
    the class count or the input channels, which the factory takes and the text leaves open, it is run once more with
    these: they stand in the label, as sizes do that it has no default for.
    Raises UsageError for text that names no factory or a file that is not there, ModelError with what the code
    printed when it raises, hangs or returns no model, MissingLibrary where there is no torch.
    """
    factory = parse_factory(text)
    here = folder or Path.cwd()
    check_source(factory, here)
    require("torch", f"Building {factory.text}")
    with tempfile.TemporaryDirectory(prefix="inspector-code-") as private:
        answer = run_factory(
            factory, here, Path(private), seconds=seconds, memory_nbytes=memory_nbytes,
            follow=digest_of_shapes(shapes) if shapes else "",
        )  # fmt: skip
    target = target_described(answer, factory)
    sizes = sizes_of_answer(answer, target, shapes) if shapes else {}
    if not sizes:
        return target
    sized = parse_factory(
        f"{factory.text}{'&' if '?' in factory.text else '?'}{'&'.join(f'{k}={v}' for k, v in sizes.items())}"
    )
    if sizes == answer.get("filled"):
        return replace(target, label=sized.text)
    return target_of_code(sized.text, folder=here, seconds=seconds, memory_nbytes=memory_nbytes)


def sizes_of_answer(answer: Mapping[str, object], target: Target, ours: Sequence[Shape]) -> dict[str, int]:
    """What the factory is given besides what was typed: sizes that it must have, and those that the file shows."""
    filled, listed = answer.get("filled"), answer.get("sizes")
    if not isinstance(filled, dict) or not isinstance(listed, list):
        return {}
    at = {tensor.name: i for i, tensor in enumerate(target.tensors)}
    shapes = [tensor.shape or () for tensor in target.tensors]
    settings = []
    for item in listed[:_MOST_SIZES]:
        name, value, other, moved = item if isinstance(item, list) and len(item) == 4 else ("", 0, 0, [])
        if not (
            isinstance(name, str) and name.isidentifier() and _is_size(value) and _is_size(other) and other > value
        ):
            continue
        laws = _laws([(at[key], shape) for key, shape in _moved(moved) if key in at], shapes, value, other)
        if laws:
            settings.append(Setting(name=name, value=value, laws=laws))
    sizes = {name: n for name, n in filled.items() if isinstance(name, str) and name.isidentifier() and _is_size(n)}
    # What follows one size alone tells which it is.
    return {**sizes, **followed(shapes, settings, ours)}


def _moved(listed: object) -> Iterator[tuple[str, tuple[int, ...]]]:
    """(name, shape) of what an answer lists, as far as it is that."""
    for item in listed if isinstance(listed, list) else ():
        name, shape = item if isinstance(item, list) and len(item) == 2 else ("", None)
        if isinstance(name, str) and isinstance(shape, list) and all(_is_size(n) for n in shape):
            yield name, tuple(shape)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31


def _laws(
    moved: Sequence[tuple[int, tuple[int, ...]]], shapes: Sequence[tuple[int, ...]], value: int, other: int
) -> tuple[Law, ...]:
    """Sizes as multiples of the setting, from the shapes under two values; () where one does not follow like that."""
    laws: list[Law] = []
    for i, shape in moved:
        if len(shape) != len(shapes[i]):
            return ()
        for dim, (size, then) in enumerate(zip(shapes[i], shape, strict=True)):
            factor, over = divmod(then - size, other - value)
            if over or factor < 0:
                return ()
            if factor:
                laws.append((i, dim, factor, size - factor * value))
    return tuple(laws)


def target_described(answer: Mapping[str, object], factory: Factory) -> Target:
    """What `code_runner.describe` says of a model, checked. Raises ModelError where that is no model."""
    if "error" in answer:
        raise ModelError(f"{factory.text}: {answer['error']}.", hint=ALONE)
    tensors = _tensors(answer, factory)
    return Target(label=factory.text, kind=TargetKind.CODE, tensors=tensors, ties=_ties(answer, tensors))


def _ties(answer: Mapping[str, object], tensors: Sequence[TargetTensor]) -> tuple[tuple[str, ...], ...]:
    """Groups of names of one tensor; of names that the answer does not have, nothing."""
    listed, names = answer.get("ties"), {tensor.name for tensor in tensors}
    groups = [group for group in listed if isinstance(group, list)] if isinstance(listed, list) else []
    return tuple(tuple(map(str, group)) for group in groups if len(group) > 1 and names.issuperset(map(str, group)))


def check_source(factory: Factory, folder: Path) -> None:
    """Raise UsageError where the file is not there, ReadError where it is no source: a device, a folder, too long."""
    if not factory.is_file:
        return
    place = folder / factory.where
    if kind_of_path(place) is PathKind.NOTHING:
        raise UsageError(f"There is no file {shown_name(factory.where)} in {folder}.", hint=FORM)
    # Read to its end, so that Python is not sent after something without one.
    read_bytes(place)


def run_factory(
    factory: Factory,
    folder: Path,
    private: Path,
    *,
    seconds: float = SECONDS,
    memory_nbytes: int | None = None,
    trial: Mapping[str, object] | None = None,
    call: Mapping[str, object] | None = None,
    raised: bool = False,
    follow: str = "",
) -> Mapping[str, object]:
    """The runner's answer, as JSON read it: unchecked beyond being a mapping. Runs the person's code.

    private: an empty folder for what goes to and fro. trial: what `code_runner.attempt` shall do with the model. call:
    "function" of this package ("module:name") that takes the model there, and its "arguments". raised: what their code
    raised is an answer, too: "kind", "says", "file", "line", "text". follow: digest of the shapes of a file whose sizes
    the model may be given (`code_runner.describe_sizes`).
    Raises ModelError as `target_of_code` does.
    """
    runner = (files("inspector.architectures") / "code_runner.py").read_text(encoding="utf-8")
    request = json.dumps(
        {
            "where": factory.where,
            "factory": factory.name,
            "is_file": factory.is_file,
            "arguments": factory.arguments,
            "typed": factory.arguments,
            "follow": follow,
            "memory_nbytes": memory_nbytes,
            "trial": trial,
            "call": {**call, "root": str(Path(__file__).resolve().parents[2])} if call else None,
        }
    )
    answer, printed = private / "answer.json", bytearray()
    process = subprocess.Popen(
        [sys.executable, "-c", runner, request, str(answer)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # Whatever it starts ends with it.
        start_new_session=True,
    )
    reader = threading.Thread(target=_keep_end, args=(process, printed), daemon=True)
    reader.start()
    try:
        code = process.wait(timeout=seconds)
        late = None
    except subprocess.TimeoutExpired as error:
        late = error
    finally:
        _end(process)
        # What left the group may hold the pipe open for as long as it likes.
        reader.join(_PATIENCE)
    if late is not None:
        raise ModelError(
            f"{factory.text} was still running after {seconds:g} seconds and was stopped.{_said(printed)}",
            hint="A factory builds the model and returns it; training belongs elsewhere.",
        ) from late
    if code != 0 or not answer.exists():
        raise ModelError(f"{factory.text} ended with exit code {code} and no model.{_said(printed)}", hint=ALONE)
    return _answer_of(factory, answer, printed, raised=raised)


def _answer_of(factory: Factory, answer: Path, printed: bytearray, *, raised: bool) -> Mapping[str, object]:
    """What the runner wrote. Raises ModelError where that is no model."""
    try:
        found = json.loads(read_bytes(answer, most_nbytes=_MOST_ANSWER))
    except LimitExceeded as error:
        raise ModelError(f"{factory.text} describes a model of more than {_MOST_ANSWER:,} bytes of names.") from error
    except (ReadError, ValueError, RecursionError) as error:
        raise ModelError(f"{factory.text} left an answer that cannot be read.{_said(printed)}") from error
    if not isinstance(found, dict):
        raise ModelError(f"{factory.text} left an answer that is no description.")
    if raised and found.get("raised") and "kind" in found:
        return found
    if "error" in found:
        names = found.get("names")
        known = f"Callable in it: {', '.join(map(str, names))}." if isinstance(names, list) and names else FORM
        known = ALONE if found.get("raised") else known
        if "before Module.__init__() call" in str(found["error"]):
            known = "Begin the __init__ of the class in that line with super().__init__()."
        raise ModelError(f"{factory.text}: {found['error']}.{_said(printed)}", hint=known)
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    """The process and all it started; silent when they ended already."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def _keep_end(process: subprocess.Popen[bytes], kept: bytearray) -> None:
    """Read all that is printed, and keep the last of it: code may print without end."""
    assert process.stdout is not None
    with process.stdout as pipe:
        while block := os.read(pipe.fileno(), 1 << 16):
            kept += block
            del kept[: -4 * _SHOWN]


def _said(printed: bytearray) -> str:
    """The end of what the code printed, as part of a message; "" when it printed nothing."""
    text = bytes(printed).decode("utf-8", "replace").strip()
    before, trace, frames = text.partition("Traceback (most recent call last):")
    if trace:
        # Of the frames the last line says what it was.
        text = f"{before.strip()} {frames.strip().splitlines()[-1]}".strip() if frames.strip() else before.strip()
    return f" It printed: {text[-_SHOWN:]}" if text else ""


def _tensors(answer: Mapping[str, object], factory: Factory) -> tuple[TargetTensor, ...]:
    """The description, checked: the code could have written anything."""
    listed = answer.get("tensors")
    if not isinstance(listed, list) or len(listed) > _MOST_TENSORS:
        raise ModelError(f"{factory.text} left an answer that is no description.")
    made = []
    for item in listed:
        name, shape, dtype, buffer, held = item if isinstance(item, list) and len(item) == 5 else (None,) * 5
        right = (
            isinstance(name, str)
            and isinstance(shape, list)
            and len(shape) <= _MOST_DIMENSIONS
            and all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 62 for n in shape)
            and isinstance(dtype, str)
            and (buffer is None or isinstance(buffer, bool))
            and isinstance(held, str)
            and _HELD.fullmatch(held) is not None
        )
        if not right:
            raise ModelError(f"{factory.text} left an answer that is no description.")
        made.append(
            TargetTensor(
                name=str(name), shape=tuple(shape or ()), dtype=str(dtype), is_buffer=buffer, held=str(held or "")
            )
        )
    if not made:
        raise ModelError(f"{factory.text} returned a model without a single tensor.")
    if len({tensor.name for tensor in made}) < len(made):
        raise ModelError(f"{factory.text} left an answer that is no description.")
    return tuple(made)
