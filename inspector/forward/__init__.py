"""One forward pass, watched: which module runs, with what, and which operators it calls. Torch is imported here."""
