"""What is said of a power law's exponent, wherever one stands."""

from __future__ import annotations

from inspector.health.power_law import PowerLaw

#: Said wherever an exponent stands.
ALPHA_IS_CONTESTED = (
    "Alpha: the exponent of the power law p(x) ~ x^-alpha fitted to the largest squared singular values (Martin and "
    "Mahoney, arXiv 1810.01075). What it says of a network is contested, and fits to fewer than some hundred numbers "
    "are unstable. D: the distance of fit and tail; above 0.1 it is hardly a power law. Tail: how many numbers it is "
    "fitted to."
)


def alpha_words(law: PowerLaw) -> str:
    """ "3.42 ± 0.21", the exponent with its standard error."""
    return f"{law.alpha:.2f} ± {law.error:.2f}"
