"""Files that are no checkpoints, named for what they are."""
