"""An optimizer's state beside the weights: whose moments they are, and whether they can follow a repair."""
