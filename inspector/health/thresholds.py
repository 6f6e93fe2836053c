"""Every number that decides whether something is said, in one table. `inspector.toml` changes them for a project."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Defaults are from the literature that each check names, and were held against healthy networks.

    few: tensors with fewer elements are not tested for how their values are distributed.
    large: a weight of larger magnitude is no working network's.

    Batch norms. norm_eps: torch's default; a smaller variance no longer decides the gain. norm_var_huge: a running
    variance above it; norm_var_ratio: or above so many times its layer's median. norm_scale_rests: a scale below this
    part of its layer's largest is at rest; norm_scale_share: said from this share of channels on. norm_shift_times: a
    shift so many scales below zero leaves a ReLU silent.

    Initialisation. initial_ks: sqrt(n) times the Kolmogorov-Smirnov distance, up to which values may be of a
    distribution (1.95: one in a thousand of such tensors is beyond it; files have hundreds). initial_errors: standard
    errors that a mean or a spread may be off. initial_edge_numel: fewest elements of which the largest proves an edge.
    initial_body: a backbone is at least this share of the layers.

    Casts and types. cast_lost, cast_coarse: share of a tensor's non-zero values that a cast to float16 makes zero, or
    subnormal, from which on it is said.

    Training. lowest_scale: of a gradient scaler. farthest_average: of averaged weights from the trained ones, relative
    L2. compared_nbytes: how much is read again to compare two sets of weights, or tensors that may be copies.
    """

    few: int = 256
    large: float = 1e3

    norm_eps: float = 1e-5
    norm_var_huge: float = 1e4
    norm_var_ratio: float = 1e3
    norm_scale_rests: float = 1e-2
    norm_scale_share: float = 0.01
    norm_shift_times: float = 4.0

    initial_ks: float = 2.3
    initial_errors: float = 5.0
    initial_edge_numel: int = 1024
    initial_body: float = 0.5

    cast_lost: float = 0.01
    cast_coarse: float = 0.25

    lowest_scale: float = 1.0
    farthest_average: float = 1.0
    compared_nbytes: int = 1 << 30


DEFAULTS = Thresholds()
