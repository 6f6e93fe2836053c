"""Every number that decides whether something is said, in one table. `inspector.toml` changes them for a project."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Defaults are from the literature that each check names, and were held against healthy networks.

    few: tensors with fewer elements are not tested for how their values are distributed.
    large: a weight of larger magnitude is no working network's; absurd: nor any parameter, a bias or a scale.

    Dead and repeated parts, scale, storage. dead: a row whose mean magnitude is below this part of the median row's
    puts nothing out.
    dead_warning, dead_error: shares of such rows.
    duplicate_length: shorter rows may be nearly equal by chance. duplicate_cosine: of rows that say the same.
    duplicate_share: of such rows.
    outlier_peak: largest magnitude of a tensor over its root mean square. outlier_row: of a row over the median row's.
    shell_errors: standard errors within which a row of an embedding is as long as when it was made.
    siblings: the fewest layers of one shape that are compared. sibling_z: robust z-score of the logarithm of the root
    mean square. sibling_spread, role_spread: the least standard deviations taken for it, within a block and within a
    role. sibling_factor: of one layer's scale against its role's median.
    large_rms: as `large`, of a whole tensor's root mean square.
    sparse: share of zeros that is worth saying. two_of_four: share of the groups of four with two zeros or more.
    clipped: share of elements that are exactly the largest or the smallest value. shifted: mean over deviation.
    least_numel, least_values: smaller tensors, and those of fewer values, are on a shorter type's grid by chance.
    zero_nbytes, repeated_nbytes: stretches of zeros and copies as a broken download or disk leaves them.

    Batch norms. norm_eps: torch's default; a smaller variance no longer decides the gain. norm_var_huge: a running
    variance above it; norm_var_ratio: or above so many times its layer's median. norm_scale_rests: a scale below this
    part of its layer's largest is at rest; norm_scale_share: said from this share of channels on. norm_shift_times: a
    shift so many scales below zero leaves a ReLU silent; norm_shift_share: said of layers with more than this share.
    norm_input: deviation of the inputs that the first one fits; norm_input_ratio: over what the later ones fit.

    Initialisation. initial_ks: sqrt(n) times the Kolmogorov-Smirnov distance, up to which values may be of a
    distribution (1.95: one in a thousand of such tensors is beyond it; files have hundreds). initial_errors: standard
    errors that a mean or a spread may be off. initial_body: a backbone is at least this share of the layers.

    Casts and types. cast_lost, cast_coarse: share of a tensor's non-zero values that a cast to float16 makes zero, or
    subnormal, from which on it is said.

    Spectra. spectral_ratio: a spectral norm over its role's median. rank_side: smaller matrices are not tested.
    rank_share: effective rank over the most it can be; rank_vanished_share: or this share of singular values below
    rank_vanished of the largest. rank_stable: stable rank. alpha_least, alpha_most: power-law exponents that are usual.
    Training. lowest_scale: of a gradient scaler. farthest_average: of averaged weights from the trained ones, relative
    L2. compared_nbytes: how much is read again to compare two sets of weights, or tensors that may be copies.
    """

    few: int = 256
    large: float = 1e3
    absurd: float = 1e30
    # Scale, dead and repeated parts, sparsity, storage.
    dead: float = 1e-3
    dead_warning: float = 0.01
    dead_error: float = 0.5
    duplicate_length: int = 16
    duplicate_cosine: float = 0.999
    duplicate_share: float = 0.05
    outlier_peak: float = 20.0
    outlier_row: float = 8.0
    shell_errors: float = 4.0
    siblings: int = 5
    sibling_z: float = 6.0
    sibling_spread: float = 0.1
    sibling_factor: float = 30.0
    role_spread: float = 0.35
    large_rms: float = 10.0
    sparse: float = 0.3
    two_of_four: float = 0.999
    clipped: float = 0.001
    shifted: float = 1.0
    least_numel: int = 64
    least_values: int = 8
    zero_nbytes: int = 2048
    repeated_nbytes: int = 4096

    norm_eps: float = 1e-5
    norm_var_huge: float = 1e4
    norm_var_ratio: float = 1e3
    norm_scale_rests: float = 1e-2
    norm_scale_share: float = 0.01
    norm_shift_times: float = 4.0
    norm_shift_share: float = 0.05
    norm_input: float = 20.0
    norm_input_ratio: float = 10.0

    initial_ks: float = 2.3
    initial_errors: float = 5.0
    initial_body: float = 0.5

    cast_lost: float = 0.01
    cast_coarse: float = 0.25

    spectral_ratio: float = 10.0
    rank_side: int = 32
    rank_share: float = 0.05
    rank_vanished: float = 1e-5
    rank_vanished_share: float = 0.1
    rank_stable: float = 2.0
    alpha_least: float = 2.0
    alpha_most: float = 6.0
    lowest_scale: float = 1.0
    farthest_average: float = 1.0
    compared_nbytes: int = 1 << 30


DEFAULTS = Thresholds()
