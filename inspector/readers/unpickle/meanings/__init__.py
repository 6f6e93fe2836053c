"""What known globals make of their arguments; every other global stays inert."""
