"""What a model in memory holds of a file's weights, tensor by tensor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inspector.checkpoint.types import Shape
from inspector.errors import ModelError
from inspector.findings import Finding, Severity


class Held(StrEnum):
    """What values a tensor of the model has.

    EQUAL: its own tensor of the file, bit for bit. CAST: the same in the model's element type. OTHER: another tensor of
    the file. TRANSPOSED: its own, transposed. INITIAL: an initialiser's. CHANGED: none of these, though the file has
    its own. ABSENT: none of these, and the file has none of its name. UNKNOWN: not compared; `why` says the reason.
    """

    EQUAL = "equal"
    CAST = "equal after a cast"
    OTHER = "another tensor's values"
    TRANSPOSED = "transposed"
    INITIAL = "at its initialisation"
    CHANGED = "other values"
    ABSENT = "not in the file"
    UNKNOWN = "not compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTensor:
    """One parameter or persistent buffer of the model.

    name: as the model spells it. source: the file's tensor that it equals, or its own one where it equals none; "" for
    none. why: the evidence ("float16 to float32", "all 0", "bit for bit numbers of uniform_(-0.04419, 0.04419)"), ""
    for plain equality. proved: False where an initialisation is told by spread alone, or by the weight beside it.
    difference: relative L2 distance from its own tensor of the file, |m - f| / |f|, None where it was not worked out.
    """

    name: str
    shape: Shape
    dtype: str
    device: str
    is_buffer: bool
    requires_grad: bool
    held: Held
    source: str = ""
    why: str = ""
    proved: bool = True
    difference: float | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether these are its own values of the file."""
        return self.held in (Held.EQUAL, Held.CAST)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedTensor:
    """A tensor of the file whose values are nowhere in the model.

    place: the model's tensor that it was meant for, "" for none; why: what stands in the way ("1000 classes ...").
    """

    name: str
    shape: Shape
    place: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedReport:
    """What the model holds of one state dict of the file.

    model: its class. source: what the file is called. state_dict: which one, as `StateDict.label`. tensors: in the
    model's order. unused: tensors of the file that went nowhere. unregistered: dotted names of layers and tensors that
    no state dict of this model has. ties: names that are one parameter. training: `model.training`; active: paths of
    batch norms and dropouts in train mode. repair: what would make the names fit, in a sentence, and code: lines that
    load it so; "" where nothing has to. not_examined: what was not compared, and why. says: the answer in a sentence.
    """

    model: str
    source: str
    state_dict: str
    tensors: tuple[LoadedTensor, ...]
    unused: tuple[UnusedTensor, ...]
    unregistered: tuple[str, ...]
    ties: tuple[tuple[str, ...], ...]
    training: bool
    active: tuple[str, ...]
    findings: tuple[Finding, ...]
    says: str
    repair: str = ""
    code: str = ""
    not_examined: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong: no finding of severity warning or error."""
        return not any(one.severity.rank >= Severity.WARNING.rank for one in self.findings)

    @property
    def loaded(self) -> int:
        """How many tensors of the model are its own of the file."""
        return sum(one.is_loaded for one in self.tensors)

    def of(self, held: Held) -> tuple[str, ...]:
        """Names of the model's tensors that hold this."""
        return tuple(one.name for one in self.tensors if one.held is held)

    def to_json(self, *, indent: int | None = 2) -> str:
        """All of it as strict JSON; keys are the field names."""
        from inspector.render.json import as_json

        return as_json(self, indent=indent)

    def __str__(self) -> str:
        lines = [self.says]
        for one in self.findings:
            lines.append(f"{one.severity.value}: {one.says}")
            lines += [f"    {line}" for line in one.remedy.splitlines()]
        lines += [f"not examined: {what}" for what in self.not_examined]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from inspector.render.html_text import escaped

        rows = "".join(
            f"<tr><td>{escaped(one.severity.value)}</td>"
            f'<td style="text-align:left">{escaped(one.says)} <i>{escaped(one.remedy)}</i></td></tr>'
            for one in self.findings
        )
        title = f"{self.model} and {self.source}"
        return f"<div><b>{escaped(title)}</b><br>{escaped(self.says)}<table>{rows}</table></div>"


class NotLoaded(ModelError):
    """The model does not hold the file; `report` says what it holds instead."""

    def __init__(self, says: str, *, hint: str = "", report: LoadedReport | None = None) -> None:
        super().__init__(says, hint=hint)
        self.report = report

    def __str__(self) -> str:
        return str(self.report) if self.report is not None else super().__str__()

    def __reduce__(self) -> tuple[object, ...]:
        return (_again, (self.says, self.hint, self.report))


def _again(says: str, hint: str, report: LoadedReport | None) -> NotLoaded:
    return NotLoaded(says, hint=hint, report=report)
