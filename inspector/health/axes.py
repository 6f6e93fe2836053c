"""Along which axis of a weight its outputs lie, what its rows stand for, and what was done to it on purpose."""

from __future__ import annotations

import re

import numpy as np

from inspector.checkpoint.types import Shape
from inspector.health.roles import LAYERS, Role
from inspector.health.subject import Examined, Subject
from inspector.weights.report import TensorStatistics
from inspector.weights.rows import row_means

#: Rows of a vocabulary's head.
VOCABULARY = 1000
# So many layers with many zeros are no accident.
_SPARSE_LAYERS = 2
_REPEATED = re.compile(
    r"(^|[._])(k|v|key|value|kv|qkv)(_proj|_lin)?\d*\.|experts?\.|in_proj|c_attn|query_key_value|wqkv"
)


def output_axis(subject: Subject, one: Examined) -> int | None:
    """0 or 1: the axis of a weight along which its outputs lie; None where that is not known.

    torch's layers put out along axis 0, its transposed convolutions and GPT-2's Conv1D along axis 1, kernels of Keras
    and Flax along the last one.
    """
    shape = one.tensor.shape
    if one.role is Role.TRANSPOSED:
        return 1
    if one.role in (Role.CONV, Role.DEPTHWISE):
        return None if one.last.endswith("kernel") else 0
    if one.role is Role.RECURRENT:
        return 0 if len(shape) == 2 and one.last != "recurrent_kernel" else None
    if one.role is not Role.LINEAR or len(shape) != 2:
        return None
    if one.last == "kernel":
        return 1
    bias = subject.beside(one, "bias")
    if bias is not None and bias.tensor.shape == (shape[1],) and shape[0] != shape[1]:
        return 1
    # A square one of GPT-2 is as its neighbours are.
    return None if shape[0] == shape[1] and one.module.endswith(("c_proj", "c_attn", "c_fc")) else 0


def is_table(one: Examined, t: TensorStatistics) -> bool:
    """Whether its rows stand for entries of a vocabulary: an embedding, or the head that answers with its tokens."""
    return is_vocabulary(one.role, t.shape)


def is_vocabulary(role: Role, shape: Shape) -> bool:
    """The same by role and shape."""
    if role is Role.EMBEDDING:
        return True
    return role is Role.LINEAR and len(shape) == 2 and shape[0] >= max(VOCABULARY, 2 * shape[1])


def is_pruned(subject: Subject, one: Examined) -> bool:
    """Whether torch.nn.utils.prune keeps a mask beside it."""
    name = one.last.removesuffix("_orig")
    return subject.beside(one, f"{name}_mask") is not None


def is_repeated(one: Examined) -> bool:
    """Whether its name is that of key and value heads, repeated for grouped queries, or of experts made from one."""
    return _REPEATED.search(one.name) is not None


def zeros_between(t: TensorStatistics) -> int:
    """Numbers that are exactly zero, outside rows of nothing else."""
    dead = int((row_means(t.rows) == 0).sum()) * t.rows.length if t.rows is not None else 0
    return t.zero - dead


def is_sparse_file(subject: Subject) -> bool:
    """Whether many single weights are zero in most of the layers, by magnitude or at random: it was pruned."""
    limits = subject.thresholds
    columns = subject.columns
    layers = subject.among(*LAYERS) & (columns.numel >= limits.few) & (columns.zero < columns.numel)
    asked = layers & (columns.zero >= limits.sparse * columns.numel)
    sparse = sum(zeros_between(t) >= limits.sparse * t.numel for _, t in subject.those(asked))
    return sparse >= _SPARSE_LAYERS and sparse * 2 >= int(np.count_nonzero(layers))
