"""Pairs of networks that compute the same under other names, and what a repair between them gives: `run.py`."""
