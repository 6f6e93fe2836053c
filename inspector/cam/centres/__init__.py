"""Where each cell of a layer looks: the centres of receptive fields."""
