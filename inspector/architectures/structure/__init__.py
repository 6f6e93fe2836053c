"""What names and shapes alone tell of a network that nobody knows: layers, repeated blocks, what goes in and out."""
