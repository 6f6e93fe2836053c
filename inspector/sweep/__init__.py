"""Long work over many pieces: planned, run anywhere, kept, gone on with."""
