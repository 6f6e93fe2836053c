"""Singular values of weight matrices, asked for by themselves: they cost a hundred times what all other checks do.

A kernel (out, in, *kernel) is looked at as the matrix (out, in x kernel), which is not the convolution's own operator:
its norm is a bound within a factor of the kernel's root size, not the layer's gain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import read_array, to_float32
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.errors import InspectorError
from inspector.health.phrases import reported
from inspector.health.power_law import PowerLaw, fit_power_law
from inspector.health.roles import Role, roles_of
from inspector.health.spectrum_findings import find_in_spectra
from inspector.health.spectrum_report import ROUNDING, Spectrum, SpectrumReport
from inspector.health.thresholds import DEFAULTS, Thresholds
from inspector.progress import Progress, silent
from inspector.units import human_shape

Matrix = NDArray[np.float32]
Values = NDArray[np.float64]
Tell = Callable[[float], None]

# The shorter side of a matrix whose eigenvalues are taken, and the elements of one that is read at all.
MOST_SIDE = 4096
MOST_NUMEL = 1 << 26
_ROLES = (Role.CONV, Role.TRANSPOSED, Role.LINEAR, Role.RECURRENT, Role.EMBEDDING)
_ROWS = 1024
# Of the time: the product with itself takes a third (measured at 2,048 x 2,048), the eigenvalues the rest in one call.
_GRAM_SHARE = 0.35


def measure_spectra(
    checkpoint: Checkpoint,
    state: StateDict | None = None,
    *,
    names: Collection[str] = (),
    thresholds: Thresholds = DEFAULTS,
    progress: Progress = silent,
) -> SpectrumReport:
    """The spectra of the weights of a state dict (the file's weights when not given).

    names: of these tensors alone, whatever they are for; else of weights and embeddings. progress counts elements, also
    inside of a matrix. Depthwise kernels are left out: their rows never meet. A tensor that is too large or cannot be
    read is in `skipped`. Raises only what progress raises.
    """
    state = state or checkpoint.weights
    tensors = state.tensors if state else checkpoint.tensors
    roles = roles_of(tensors)
    wanted = [t for t in tensors if _is_asked(t, roles[t.path], names)]
    total = sum(t.numel for t in wanted)
    done = 0
    spectra: list[Spectrum] = []
    skipped: list[tuple[str, str]] = []
    for tensor in wanted:
        progress(done, total, tensor.name)
        found = _spectrum(checkpoint, tensor, roles[tensor.path], _inside(progress, done, total, tensor))
        done += tensor.numel
        if isinstance(found, str):
            skipped.append((tensor.name, found))
        else:
            spectra.append(found)
    progress(total, total, "done")
    return SpectrumReport(
        spectra=tuple(spectra),
        findings=reported(find_in_spectra(spectra, thresholds)),
        skipped=tuple(skipped),
    )


def _inside(progress: Progress, done: int, total: int, tensor: TensorInfo) -> Tell:
    """The progress of one matrix, as part of all."""

    def tell(share: float) -> None:
        progress(done + int(share * tensor.numel), total, tensor.name)

    return tell


def _spectrum(checkpoint: Checkpoint, tensor: TensorInfo, role: Role, tell: Tell) -> Spectrum | str:
    """The tensor's, or why it has none, as half a sentence."""
    if role is Role.DEPTHWISE:
        return "the rows of a depthwise kernel never meet"
    if min(tensor.shape) < 1:
        return "it has no elements"
    if tensor.numel > MOST_NUMEL:
        return f"{human_shape(tensor.shape)} is more than {MOST_NUMEL:,} elements"
    dtype = find_dtype(tensor.dtype)
    if dtype is None or not dtype.floating or "complex" in dtype.name:
        return f"{tensor.dtype} numbers are no matrix of real numbers"
    try:
        raw = read_array(checkpoint, tensor)
    except (InspectorError, OSError, ValueError, MemoryError) as error:
        return f"it could not be read: {error}"
    with np.errstate(over="ignore"):
        matrix = as_matrix(raw.astype(np.float32) if dtype.native else to_float32(raw, tensor.dtype), role)
    if not np.all(np.isfinite(matrix)):
        return "it holds NaN or infinity"
    if not matrix.any():
        return "it is zero throughout"
    rows, columns = matrix.shape
    squares: Values | None = _squares_of_values(matrix, tell) if min(rows, columns) <= MOST_SIDE else None
    norm = spectral_norm(matrix) if squares is None else float(np.sqrt(squares[0]))
    frobenius = float(np.sqrt(sum(float(np.square(part, dtype=np.float64).sum()) for part in _parts(matrix))))
    values: Values | None = None if squares is None else np.asarray(np.sqrt(squares), np.float64)
    law: PowerLaw | None = (
        None if squares is None else fit_power_law(squares[squares >= ROUNDING**2 * squares[0]] / max(rows, columns))
    )
    # Rows and columns of zeros are another check's: what is left has this rank at most.
    living = min(int(np.count_nonzero(matrix.any(axis=1))), int(np.count_nonzero(matrix.any(axis=0))))
    return Spectrum(
        name=tensor.name,
        role=role,
        rows=rows,
        columns=columns,
        living=living,
        spectral_norm=norm,
        stable_rank=(frobenius / norm) ** 2,
        effective_rank=None if values is None else effective_rank(values),
        values=b"" if values is None else values.tobytes(),
        power_law=law,
    )


def _is_asked(tensor: TensorInfo, role: Role, names: Collection[str]) -> bool:
    return len(tensor.shape) >= 2 and (tensor.name in names if names else role in _ROLES)


def may_have_spectrum(tensor: TensorInfo) -> bool:
    """Whether its shape and type allow one; `measure_spectra` says what else stands in the way."""
    dtype = find_dtype(tensor.dtype)
    return len(tensor.shape) >= 2 and dtype is not None and dtype.floating and "complex" not in dtype.name


def working_nbytes(tensor: TensorInfo) -> int:
    """Memory that one tensor takes at most: as read, in float32, a copy; its product with itself and LAPACK's own."""
    side = min(math.isqrt(tensor.numel), MOST_SIDE)
    return tensor.nbytes + 2 * 4 * tensor.numel + 3 * 8 * side**2


def as_matrix(weight: Matrix, role: Role) -> Matrix:
    """(out, in x kernel) of a weight; a transposed convolution's is (in, out / groups, *kernel) in the file."""
    if role is Role.TRANSPOSED:
        weight = weight.swapaxes(0, 1)
    return np.ascontiguousarray(weight.reshape(weight.shape[0], -1))


def spectral_norm(matrix: Matrix, *, iterations: int = 30) -> float:
    """The largest singular value by power iteration from a fixed start, from below: within 1 %, mostly far nearer.

    A block of eight directions is iterated, since a single one is slow where several values are almost the largest, as
    they are in a random matrix (Halko 2011, arXiv 0909.4061, section 4.5).
    """
    block = np.random.default_rng(0).standard_normal((matrix.shape[1], min(8, *matrix.shape))).astype(np.float32)
    norm = 0.0
    for _ in range(iterations):
        image = matrix @ np.linalg.qr(block)[0]
        before, norm = norm, float(np.linalg.norm(image, 2))
        if abs(norm - before) <= 1e-7 * norm:
            break
        # Its own scale, so that float32 never overflows.
        block = matrix.T @ (image / norm)
    return norm


def effective_rank(values: NDArray[np.float64]) -> float:
    """exp of the entropy of the singular values as shares of their sum (Roy and Vetterli 2007); 1 to their number."""
    shares = values[values > 0] / values.sum()
    return float(np.exp(-np.sum(shares * np.log(shares))))


def _squares_of_values(matrix: Matrix, tell: Tell) -> NDArray[np.float64]:
    """(shorter side,) squared singular values, largest first, from the Gram matrix in float64.

    Singular values below some 1e-8 of the largest are lost in its rounding, and come out as zero or that small (see
    `ROUNDING`).
    """
    short = matrix if matrix.shape[1] <= matrix.shape[0] else matrix.T
    gram = np.zeros((short.shape[1], short.shape[1]))
    for number, part in enumerate(_parts(short)):
        tell(_GRAM_SHARE * number * _ROWS / len(short))
        double = part.astype(np.float64)
        gram += double.T @ double
    tell(_GRAM_SHARE)
    return np.asarray(np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0), np.float64)


def _parts(matrix: Matrix) -> Iterator[Matrix]:
    """Some rows at a time, so that no second copy in float64 is made of all of it."""
    for at in range(0, matrix.shape[0], _ROWS):
        yield matrix[at : at + _ROWS]


__all__ = [
    *(
        "MOST_NUMEL",
        "MOST_SIDE",
        "as_matrix",
        "effective_rank",
        "may_have_spectrum",
        "measure_spectra",
        "spectral_norm",
    ),
    "working_nbytes",
]
