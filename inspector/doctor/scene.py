"""What is known where a forward pass failed: the material that causes are looked for in."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from inspector.doctor.frames import OwnFrame, own_frames, without_folders
from inspector.doctor.record import INPUT, Recorder
from inspector.doctor.trials import Trials
from inspector.doctor.values_named import value_of
from inspector.forward.watch import Call, ForwardError, tensors_in
from inspector.units import human_shape

_MOST_LINE = 300


@dataclass(slots=True, eq=False)
class Scene:
    """model, args, kwargs: what was run. recorder: what was heard of it. trials: for trying out other inputs."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    raised: ForwardError
    recorder: Recorder
    trials: Trials
    frames: list[OwnFrame] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.frames = own_frames(self.error.__traceback__)

    @property
    def error(self) -> BaseException:
        """As it was raised."""
        return self.raised.error

    @property
    def text(self) -> str:
        """Of the error, whole."""
        return str(self.error)

    @property
    def first_line(self) -> str:
        """Of the error, fit to be shown."""
        line = next((line.strip() for line in self.text.splitlines() if line.strip()), type(self.error).__name__)
        return without_folders(line)[:_MOST_LINE]

    @property
    def call(self) -> Call | None:
        """The innermost that was running."""
        return self.raised.calls[-1] if self.raised.calls else None

    @property
    def layer(self) -> nn.Module:
        """The innermost module that was running."""
        return self.call.module if self.call is not None else self.model

    @property
    def path(self) -> str:
        """Of the layer, for a sentence."""
        return self.name_of(self.call.path if self.call is not None else "", self.layer)

    @property
    def is_torch_layer(self) -> bool:
        """Whether the failure is in one of torch's own layers, and not in the model's own code."""
        return type(self.layer).__module__.startswith("torch.nn.modules.")

    @property
    def given(self) -> Any:
        """What the layer got first."""
        if self.call is None:
            return None
        return self.call.args[0] if self.call.args else next(iter(self.call.kwargs.values()), None)

    @property
    def operator(self) -> str:
        """The failing operator's plain name ("addmm"), "" where none had begun."""
        return "" if self.raised.operator is None else self.raised.operator._schema.name.partition("::")[2]

    @property
    def operands(self) -> list[Tensor]:
        """What it was given, tensors alone."""
        return list(tensors_in((self.raised.operands[0], dict(self.raised.operands[1]))))

    @property
    def function_tensors(self) -> list[Tensor]:
        """Those that the last function was given, inside lists, too."""
        return list(tensors_in((tuple(self.recorder.function_args[0]), dict(self.recorder.function_args[1]))))

    @property
    def frame(self) -> OwnFrame | None:
        """The model's own line nearest to the failure."""
        return self.frames[-1] if self.frames else None

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors that the model was given."""
        return list(tensors_in((self.args, dict(self.kwargs))))

    @property
    def picture(self) -> Tensor | None:
        """The first of them."""
        return next(iter(self.inputs), None)

    @property
    def before_all_weights(self) -> bool:
        """Whether no module with weights of its own had run before: what failed was given the input, more or less."""
        ended = {record.path for record in self.recorder.calls if record.ended}
        return not any(path in ended and module._parameters for path, module in self.model.named_modules())

    def name_of(self, path: str, module: nn.Module | None = None) -> str:
        """A module in a sentence."""
        kind = "" if module is None else f" ({type(module).__name__})"
        if path:
            return f"{path}{kind}"
        return type(self.model).__name__ if module is None or module is self.model else f"the model itself{kind}"

    def maker_of(self, tensor: Tensor) -> str:
        """Who made it, as a clause: "from layer1.0.bn2", "the input", "the parameter pos"."""
        maker = self.recorder.maker(tensor)
        if maker == INPUT:
            return "the input"
        if id(tensor) in self.recorder.names:
            kind = "parameter" if isinstance(tensor, nn.Parameter) else "buffer"
            return f"the {kind} {self.recorder.names[id(tensor)]}"
        if maker:
            return f"from {maker}"
        operator = self.recorder.operator_of(tensor)
        if not operator:
            return ""
        word = operator.strip("_")
        return f"made by {word}"

    def variable_of(self, tensor: Tensor) -> str:
        """What the model's own line calls it, "" where it has no name."""
        if self.frame is None:
            return ""
        named = [name for name, value in self.frame.variables.items() if value is tensor]
        statement = self.frame.statement
        if statement is None:
            return named[0] if named else ""
        nodes = [n for n in ast.walk(statement) if isinstance(n, ast.Name | ast.Attribute | ast.Subscript)]
        mentioned = [n.id for n in nodes if isinstance(n, ast.Name) and n.id in named]
        dotted = [n for n in nodes if isinstance(n, ast.Attribute) and value_of(n, self.frame.variables) is tensor]
        return next(iter([*mentioned, *map(ast.unparse, dotted), *named]), "")

    def told(self, tensor: Tensor) -> str:
        """A tensor in a sentence: "`out` of 1x64x8x8 (from bn2)"."""
        name, maker = self.variable_of(tensor), self.maker_of(tensor)
        called = f"`{name}` of " if name else ""
        return f"{called}{human_shape(tuple(tensor.shape))}" + (f" ({maker})" if maker else "")

    def changed(self, change: Callable[[Tensor], Tensor | None]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The model's arguments with every tensor changed that can be; None where none can."""
        hits = 0

        def one(value: Any) -> Any:
            nonlocal hits
            if not isinstance(value, Tensor):
                return value
            made = change(value)
            hits += made is not None
            return value if made is None else made

        with torch.no_grad():
            args, kwargs = tree_map(one, (self.args, dict(self.kwargs)))
        return (args, kwargs) if hits else None

    def runs_with(self, change: Callable[[Tensor], Tensor | None], *, numbers: bool = False) -> bool:
        """Whether the model runs through with its input changed so."""
        made = self.changed(change)
        if made is None:
            return False
        return (self.trials.runs_with_numbers if numbers else self.trials.runs)(*made)

    def modules_called(self) -> Iterator[tuple[str, nn.Module]]:
        """Those that ended, last first."""
        modules = dict(self.model.named_modules())
        for record in reversed(self.recorder.calls):
            if record.ended and record.path in modules:
                yield record.path, modules[record.path]


def shape_of(value: Any) -> str:
    """Of a tensor, for a sentence; the class of anything else."""
    return human_shape(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__


def kinds_in(values: Sequence[Any]) -> str:
    """The classes of these, for a sentence."""
    return ", ".join(type(value).__name__ for value in values)
