"""What can be proven about a repair beyond its names and shapes: one kind of proof per file, put together in verify."""
