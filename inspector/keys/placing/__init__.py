"""Which tensor of the file goes where: by name, by order, by shape, and what of that is no proof."""
