"""Sample checkpoints: where they come from, and how to make them again (see README.md beside this file)."""
