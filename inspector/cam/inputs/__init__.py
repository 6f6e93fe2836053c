"""From a picture to the model's input, and what its classes are called."""
