"""From names and shapes to an architecture with its evidence, and from there to an nn.Module."""
