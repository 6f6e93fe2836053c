"""What a network computes, as nodes and edges: from a forward pass that was watched, or from a file that carries it."""
