"""Pickles inside pickles, behind them, and spelled as text."""
