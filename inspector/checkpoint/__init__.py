"""A checkpoint as the file declares it."""
