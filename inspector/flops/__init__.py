"""How many multiply-accumulates, per module."""
