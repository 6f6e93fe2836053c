"""torch.export archives: weights, and what their JSON says about the program."""
