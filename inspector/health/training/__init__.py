"""What a file holds of the training beside the weights: optimizers, schedules, gradient scalers, counters."""
