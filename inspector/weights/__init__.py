"""What the numbers in the tensors look like."""
