"""Where the model looks."""
