"""The strongest pattern in a layer, without a singular value decomposition.

Mostly one pattern outweighs all others together: then a few power iterations find it, and prove that it is the one.
Otherwise the smaller Gram matrix is decomposed: of 2,048 channels on 7 x 7 places that is one of 49 x 49.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Power iterations before the Gram matrix is decomposed, and after how many a pattern has to outweigh the others.
_STEPS = 32
_CLEAR = 6
# Largest error of the direction, as a share of it.
_SURE = 1e-13
# A Gram matrix of so many rows is decomposed faster than a few iterations take.
_SMALL = 64


def reduce(features: Tensor, *, eigen: bool) -> Tensor:
    """What channels add (N, C, h, w) as one map (N, h, w): their sum, or their strongest pattern. Maps stay maps."""
    if features.dim() == 3:
        return features
    return first_component(features) if eigen else features.sum(dim=1)


def first_component(features: Tensor) -> Tensor:
    """features (N, C, h, w) as (places x channels), projected on its first right singular vector. Returns (N, h, w).

    The sign of a singular vector is arbitrary. Here it is the one with which the projection agrees with the mean over
    the channels; where that says nothing, the cell of the largest magnitude is positive.
    """
    count, _, height, width = features.shape
    matrix = features.flatten(2).transpose(1, 2).double()  # (N, places, C); small, and eigenvectors need the digits
    if not bool(torch.isfinite(matrix).all()):
        return features.new_full((count, height, width), torch.nan)
    projected = _outweighing(matrix) if min(matrix.shape[1:]) > _SMALL else None
    if projected is None:
        projected = _decomposed(matrix)
    agreement = (projected * matrix.mean(dim=2)).sum(dim=1, keepdim=True)
    strongest = projected.gather(1, projected.abs().argmax(dim=1, keepdim=True))
    sign = torch.where(agreement != 0, agreement, strongest).sign()
    found: Tensor = (projected * sign).to(features.dtype).reshape(count, height, width)
    return found


def _outweighing(matrix: Tensor) -> Tensor | None:
    """(N, places): each matrix times its first right singular vector, None unless it is proved to be that one.

    matrix: (N, places, channels). The squared singular values add up to the squared entries. So one of more than half
    of that is the largest, and its distance to the next bounds the error of its vector by the residual.
    """
    squares = matrix.square()
    total = squares.sum(dim=(1, 2))
    # The place with most in it: a start that is never at right angles to everything.
    start = squares.sum(dim=2).argmax(dim=1)
    vector = matrix[torch.arange(len(matrix), device=matrix.device), start][:, :, None]
    for step in range(_STEPS):
        vector = vector / vector.norm(dim=1, keepdim=True)
        projected = matrix @ vector
        image = matrix.transpose(1, 2) @ projected
        square = projected.square().sum(dim=(1, 2))
        residual = (image - square[:, None, None] * vector).norm(dim=(1, 2))
        lead = 2 * square - total
        # Written so that NaN, of a matrix of zeros, proves nothing.
        if bool(((residual <= _SURE * lead) & (lead > 0)).all()):
            found: Tensor = projected[:, :, 0]
            return found
        if step >= _CLEAR and not bool((lead > 0).all()):
            return None
        vector = image
    return None


def _decomposed(matrix: Tensor) -> Tensor:
    """The same by the eigenvectors of the smaller Gram matrix."""
    if matrix.shape[2] <= matrix.shape[1]:
        _, vectors = torch.linalg.eigh(matrix.transpose(1, 2) @ matrix)
        made: Tensor = matrix @ vectors[:, :, -1:]
        return made[:, :, 0]
    values, vectors = torch.linalg.eigh(matrix @ matrix.transpose(1, 2))
    scaled: Tensor = vectors[:, :, -1] * values[:, -1:].clamp_min(0).sqrt()
    return scaled
