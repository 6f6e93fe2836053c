"""TorchScript archives: weights, module tree, and the program as text."""
