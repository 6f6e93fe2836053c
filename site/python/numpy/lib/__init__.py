"""As NumPy's package of this name."""
