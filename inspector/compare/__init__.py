"""What differs between two checkpoints: tensors paired, told same from changed, measured, and what that proves."""
