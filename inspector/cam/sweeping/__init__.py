"""Many pictures through one model by a sweep: fixed pieces of them, wherever pieces run."""
