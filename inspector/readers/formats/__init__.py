"""Formats of one file, one per module or package here; listed in `readers/opening.py`."""
