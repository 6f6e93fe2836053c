"""What is known about a global name."""
