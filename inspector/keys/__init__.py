"""Why a state dict does not load, and the plan that makes it load."""
