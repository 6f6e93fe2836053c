"""Many visitors at once: `python -m benchmarks.load`."""
