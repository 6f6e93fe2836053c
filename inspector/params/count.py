"""How many parameters and bytes, module by module, from names, shapes and types alone.

Checked against torch's own `sum(p.numel() for p in model.parameters())`. No tensor is read and torch is not imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from inspector.architectures.types import Recognition
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.types import Checkpoint, ModuleNode, StateDict, StateRole, TensorInfo
from inspector.errors import ModelError
from inspector.params.report import ModuleCount, ParameterReport, RoleSource, TensorRole
from inspector.params.roles import role_by_name


def count_parameters(
    checkpoint: Checkpoint, state: StateDict | None = None, recognition: Recognition | None = None
) -> ParameterReport:
    """The counts of one state dict, by default the one most likely meant as the weights.

    recognition: of that same state dict; its best candidate tells buffers from parameters where the file does not.
    Raises ModelError when there is no state dict to count.
    """
    state = state or checkpoint.weights
    if state is None:
        raise ModelError(
            f"{checkpoint.origin.name} holds no set of named weights, so there is nothing to count by module.",
            hint="Its tensors are listed one by one under Tensors.",
        )
    roles, source = _find_roles(state, recognition)
    shared = _find_shared(state.tensors)
    modules = tuple(_walk(state.modules, roles, shared)[0])
    unique = [tensor for tensor in state.tensors if tensor.path not in shared]
    return ParameterReport(
        state_dict=state.path,
        modules=modules,
        trainable=_count_trainable(unique, roles) if state.is_module else None,
        shared=tuple((tensor.name, shared[tensor.path]) for tensor in state.tensors if tensor.path in shared),
        dtypes=_count_dtypes(unique),
        role_source=source,
        optimizer_nbytes=_count_optimizer(checkpoint),
    )


Path = tuple[str, ...]


def _find_roles(state: StateDict, recognition: Recognition | None) -> tuple[dict[Path, TensorRole], RoleSource]:
    """The role of every tensor by its path, and the best source that any of them needed."""
    expected = _expected_buffers(state, recognition)
    names = frozenset(tensor.name for tensor in state.tensors)
    roles: dict[Path, TensorRole] = {}
    sources: set[RoleSource] = set()
    for tensor in state.tensors:
        is_buffer: bool | None
        if tensor.is_parameter is not None:
            is_buffer, source = not tensor.is_parameter, RoleSource.PICKLED_MODULE
        else:
            is_buffer, source = expected.get(tensor.name), RoleSource.ARCHITECTURE
        if is_buffer is None:
            roles[tensor.path], source = role_by_name(tensor, names), RoleSource.NAME
        else:
            roles[tensor.path] = TensorRole.BUFFER if is_buffer else TensorRole.PARAMETER
        sources.add(source)
    # A pickled module tells all; a recognised architecture tells all but what it does not contain.
    return roles, next((source for source in RoleSource if source in sources), RoleSource.NAME)


def _expected_buffers(state: StateDict, recognition: Recognition | None) -> dict[str, bool | None]:
    """Whether the recognised architecture has a buffer of that name (as the file spells it)."""
    if recognition is None or recognition.best is None or recognition.state_dict != state.path:
        return {}
    from inspector.architectures.targets import target_of_candidate

    candidate = recognition.best
    target = target_of_candidate(candidate)
    return {candidate.wrapper + tensor.name: tensor.is_buffer for tensor in target.tensors}


def _find_shared(tensors: Iterable[TensorInfo]) -> dict[Path, str]:
    """path -> the first name of the same storage region, for tensors that are not the first.

    The region is its begin and its extent in bytes: a tied weight shows the same elements, perhaps transposed. Views
    that merely overlap are different tensors and count each.
    """
    first: dict[tuple[str, int, int], str] = {}
    shared: dict[Path, str] = {}
    for tensor in tensors:
        if tensor.storage_id is None or tensor.numel == 0:
            continue
        dtype = find_dtype(tensor.dtype)
        itemsize = dtype.itemsize if dtype is not None else max(1, tensor.nbytes // tensor.numel)
        region = (tensor.storage_id, tensor.offset * itemsize, _extent(tensor) * itemsize)
        if region in first:
            shared[tensor.path] = first[region]
        else:
            first[region] = tensor.name
    return shared


def _extent(tensor: TensorInfo) -> int:
    """How many elements of the storage lie between the tensor's first and last one, both included."""
    if tensor.stride is None:
        return tensor.numel
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride, strict=False))


@dataclass(slots=True)
class _Sums:
    """Running sums of one module with everything below it."""

    parameters: int = 0
    own_parameters: int = 0
    buffers: int = 0
    parameter_nbytes: int = 0
    buffer_nbytes: int = 0
    tensors: int = 0
    rows: list[ModuleCount] = field(default_factory=list)


def _walk(
    node: ModuleNode, roles: dict[Path, TensorRole], shared: dict[Path, str], depth: int = 0
) -> tuple[list[ModuleCount], _Sums]:
    """The rows of node and of everything below it, depth first, and node's sums.

    Recursion is bounded: readers and `module_tree` cut deeper nesting.
    """
    sums = _Sums(tensors=len(node.tensors))
    for tensor in node.tensors:
        if tensor.path in shared:
            continue
        if roles.get(tensor.path, TensorRole.PARAMETER) is TensorRole.PARAMETER:
            sums.own_parameters += tensor.numel
            sums.parameter_nbytes += tensor.nbytes
        else:
            sums.buffers += tensor.numel
            sums.buffer_nbytes += tensor.nbytes
    sums.parameters = sums.own_parameters
    below: list[ModuleCount] = []
    for child in node.children:
        rows, part = _walk(child, roles, shared, depth + 1)
        below.extend(rows)
        sums.parameters += part.parameters
        sums.buffers += part.buffers
        sums.parameter_nbytes += part.parameter_nbytes
        sums.buffer_nbytes += part.buffer_nbytes
        sums.tensors += part.tensors
    row = ModuleCount(
        path=node.path,
        depth=depth,
        kind=node.kind,
        parameters=sums.parameters,
        own_parameters=sums.own_parameters,
        buffers=sums.buffers,
        parameter_nbytes=sums.parameter_nbytes,
        buffer_nbytes=sums.buffer_nbytes,
        tensors=sums.tensors,
    )
    return [row, *below], sums


def _count_trainable(tensors: Iterable[TensorInfo], roles: dict[Path, TensorRole]) -> int:
    return sum(t.numel for t in tensors if t.requires_grad and roles[t.path] is TensorRole.PARAMETER)


def _count_dtypes(tensors: Iterable[TensorInfo]) -> tuple[tuple[str, int, int], ...]:
    """(dtype, elements, bytes), most bytes first."""
    elements: dict[str, int] = {}
    nbytes: dict[str, int] = {}
    for tensor in tensors:
        elements[tensor.dtype] = elements.get(tensor.dtype, 0) + tensor.numel
        nbytes[tensor.dtype] = nbytes.get(tensor.dtype, 0) + tensor.nbytes
    return tuple((name, elements[name], nbytes[name]) for name in sorted(elements, key=lambda n: (-nbytes[n], n)))


def _count_optimizer(checkpoint: Checkpoint) -> int:
    """Bytes of the tensors in every optimizer state of the file, shared ones once."""
    tensors = {t.path: t for s in checkpoint.state_dicts if s.role is StateRole.OPTIMIZER for t in s.tensors}
    shared = _find_shared(tensors.values())
    return sum(tensor.nbytes for path, tensor in tensors.items() if path not in shared)
