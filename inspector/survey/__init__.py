"""What lies in a whole tree of files: one row each, for people who gate or tidy many of them."""
