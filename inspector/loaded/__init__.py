"""Does this model hold this file's weights? Asked of a model in memory, in anyone's training script."""
