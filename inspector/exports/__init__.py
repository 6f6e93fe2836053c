"""Writing a repaired file, verified."""
