"""The Run page: which checkpoints, and what they say as one training."""
