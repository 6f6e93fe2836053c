"""How many parameters and bytes, per module."""
