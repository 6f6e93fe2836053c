"""Formats of several files, one per file here; listed in `readers/opening.py`."""
