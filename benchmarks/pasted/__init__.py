"""Error messages of public threads, what happens to them on their way, and whether the answer to them is true."""
