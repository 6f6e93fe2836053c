"""KeyBench: what becomes of damaged keys, by this program and by others. `python -m benchmarks.keybench` runs it."""
