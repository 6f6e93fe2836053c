"""How far each output looks into the picture: the bill's column, and the rules of the operators."""
