"""Every number that decides whether something is said, in one table. `inspector.toml` changes them for a project."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Defaults are from the literature that each check names, and were held against healthy networks.

    few: tensors with fewer elements are not tested for how their values are distributed.
    large: a weight of larger magnitude is no working network's.

    dead: a row whose mean magnitude is below this part of the median row's puts nothing out (0 always does).
    dead_warning, dead_error: shares of such rows.
    duplicate_length: shorter rows may be equal by chance. duplicate_cosine: of rows that say the same.
    duplicate_share: of such rows.
    outlier_peak: largest magnitude of a tensor over its root mean square. outlier_row: of a row over the median row's.
    shell_errors: standard errors within which a row of an embedding is as long as when it was made.
    siblings: the fewest layers of one shape that are compared. sibling_z: robust z-score of the logarithm of the root
    mean square. sibling_spread: the least standard deviation taken for it. sibling_factor: of one layer's scale
    against its role's median.
    large_rms: as `large`, of a whole tensor's root mean square.
    sparse: share of zeros that is worth saying. two_of_four: share of the groups of four with two zeros or more.
    clipped: share of elements that are exactly the largest or the smallest value.
    least_numel, least_values: smaller tensors, and those of fewer values, are on a shorter type's grid by chance.
    zero_nbytes, repeated_nbytes: stretches of zeros and copies as a broken download or disk leaves them.
    """

    few: int = 256
    large: float = 1e3
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
    large_rms: float = 10.0
    sparse: float = 0.3
    two_of_four: float = 0.999
    clipped: float = 0.001
    least_numel: int = 64
    least_values: int = 8
    zero_nbytes: int = 4096
    repeated_nbytes: int = 1 << 20


DEFAULTS = Thresholds()
