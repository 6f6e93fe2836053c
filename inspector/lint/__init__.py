"""Are these checkpoints fit to be committed? Many files, what is wrong with each, and one rule for the exit code."""
