"""Parameters and bytes per module, from the file alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inspector.short_repr import short_repr


class TensorRole(StrEnum):
    """Parameter or buffer, as far as the file tells."""

    PARAMETER = "parameter"
    BUFFER = "buffer"


class RoleSource(StrEnum):
    """How the role of a tensor is known."""

    PICKLED_MODULE = "the pickled module"
    ARCHITECTURE = "the recognised architecture"
    NAME = "their names"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleCount:
    """One module with everything below it.

    path: dotted, "" for the whole model. depth: 0 for the whole model. kind: class name or None.
    parameters, buffers: elements; own_parameters: those directly in this module.
    A tensor that shares its storage region with an earlier one is counted once, at its first name.
    """

    path: str
    depth: int
    kind: str | None
    parameters: int
    own_parameters: int
    buffers: int
    parameter_nbytes: int
    buffer_nbytes: int
    tensors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterReport:
    """The counts of one state dict.

    modules: depth first, the whole model first. trainable: elements with requires_grad, None where not in the file
    (a state dict never has it; only a pickled module does). shared: (name, first name) of tensors not counted twice.
    dtypes: (dtype, elements, bytes). role_source: how parameters were told from buffers.
    optimizer_nbytes: bytes of optimizer state in the same file.
    """

    __repr__ = short_repr

    state_dict: tuple[str, ...]
    modules: tuple[ModuleCount, ...]
    trainable: int | None
    shared: tuple[tuple[str, str], ...]
    dtypes: tuple[tuple[str, int, int], ...]
    role_source: RoleSource
    optimizer_nbytes: int

    @property
    def total(self) -> ModuleCount:
        """The whole model."""
        return self.modules[0]
