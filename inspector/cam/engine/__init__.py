"""The model, lent for one batch: one forward, its backwards, further passes, and maps from them."""
