"""Every number that decides whether something is said, in one table. `inspector.toml` changes them for a project.

docs/health.md lists them, from the line above each.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Defaults are from the literature that each check names, and were held against healthy networks.

    What each is for stands above it, and in docs/health.md with the findings that go by it.
    """

    #: Tensors with fewer elements are not tested for how their values are distributed.
    few: int = 256
    #: A weight of larger magnitude is no working network's.
    large: float = 1e3
    #: No parameter of a larger magnitude, a bias or a scale either, is a working network's.
    absurd: float = 1e30

    # Scale, dead and repeated parts, sparsity, storage.
    #: A row whose mean magnitude is below this part of the median row's puts nothing out.
    dead: float = 1e-3
    #: Share of dead rows from which on it is a warning.
    dead_warning: float = 0.01
    #: Share of dead rows from which on it is an error.
    dead_error: float = 0.5
    #: Shorter rows may be nearly equal by chance.
    duplicate_length: int = 16
    #: Cosine of two rows that say the same.
    duplicate_cosine: float = 0.999
    #: Share of rows that repeat another.
    duplicate_share: float = 0.05
    #: Largest magnitude of a tensor over its root mean square.
    outlier_peak: float = 20.0
    #: Magnitude of a row over the median row's.
    outlier_row: float = 8.0
    #: Standard errors within which a row of an embedding is as long as when it was made.
    shell_errors: float = 4.0
    #: The fewest layers of one shape that are compared.
    siblings: int = 5
    #: Robust z-score of the logarithm of the root mean square, among layers of one shape or role.
    sibling_z: float = 6.0
    #: The least standard deviation of that logarithm that is taken for it within a block.
    sibling_spread: float = 0.1
    #: One layer's scale over the median of its like.
    sibling_factor: float = 30.0
    #: As sibling_spread, within a role.
    role_spread: float = 0.35
    #: As large, of a whole tensor's root mean square.
    large_rms: float = 10.0
    #: Share of zeros that is worth saying.
    sparse: float = 0.3
    #: Share of the groups of four with two zeros or more.
    two_of_four: float = 0.999
    #: Share of elements that are exactly the largest or the smallest value.
    clipped: float = 0.001
    #: Mean of a tensor over its standard deviation.
    shifted: float = 1.0
    #: Smaller tensors are on a shorter type's grid by chance.
    least_numel: int = 64
    #: Tensors of fewer values are on a shorter type's grid by chance.
    least_values: int = 8
    #: Bytes of a stretch of zeros as a broken download or disk leaves it.
    zero_nbytes: int = 2048
    #: Bytes of a stretch that repeats another one of the file.
    repeated_nbytes: int = 4096

    # Batch norms.
    #: torch's default epsilon: a smaller running variance no longer decides the gain.
    norm_eps: float = 1e-5
    #: A running variance above it is too large.
    norm_var_huge: float = 1e4
    #: A running variance above so many times its layer's median.
    norm_var_ratio: float = 1e3
    #: A scale below this part of its layer's largest is at rest.
    norm_scale_rests: float = 1e-2
    #: Share of channels at rest from which on it is said.
    norm_scale_share: float = 0.01
    #: A shift so many scales below zero leaves a ReLU silent.
    norm_shift_times: float = 4.0
    #: Share of such channels from which on it is said.
    norm_shift_share: float = 0.05
    #: Deviation of the inputs that the first norm's statistics fit.
    norm_input: float = 20.0
    #: That deviation over what the later norms fit.
    norm_input_ratio: float = 10.0

    # Initialisation.
    #: sqrt(n) times the Kolmogorov-Smirnov distance up to which values may be of a distribution. One in a thousand of
    #: such tensors is beyond 1.95; files have hundreds.
    initial_ks: float = 2.3
    #: Standard errors that a mean or a spread may be off.
    initial_errors: float = 5.0
    #: Share of the layers that a backbone is at least.
    initial_body: float = 0.5

    # Casts and types.
    #: Share of a tensor's non-zero values that a cast to float16 makes zero.
    cast_lost: float = 0.01
    #: Share of a tensor's non-zero values that a cast to float16 makes subnormal.
    cast_coarse: float = 0.25

    # Spectra.
    #: A spectral norm over its role's median.
    spectral_ratio: float = 10.0
    #: Matrices with a shorter side below it are not tested.
    rank_side: int = 32
    #: Effective rank over the most it can be.
    rank_share: float = 0.05
    #: A singular value below this part of the largest has vanished.
    rank_vanished: float = 1e-5
    #: Share of singular values that have vanished.
    rank_vanished_share: float = 0.1
    #: Stable rank.
    rank_stable: float = 2.0
    #: Power-law exponents below it are unusual.
    alpha_least: float = 2.0
    #: Power-law exponents above it are unusual.
    alpha_most: float = 6.0

    # Training.
    #: The least scale of a gradient scaler that is well.
    lowest_scale: float = 1.0
    #: Distance of averaged weights from the trained ones, over the norm of these.
    farthest_average: float = 1.0
    #: Bytes that are read again to compare two sets of weights, or tensors that may be copies.
    compared_nbytes: int = 1 << 30


DEFAULTS = Thresholds()
