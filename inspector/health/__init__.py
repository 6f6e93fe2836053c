"""Is this model any good? Checks over what was measured, each with its number, its threshold and its excuse."""
