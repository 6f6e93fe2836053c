"""Pasted Python that loads weights: read as a tree, never run, and its faults named with line and corrected line."""
