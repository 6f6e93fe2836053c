"""Which layers have a map, in which layout their numbers lie, and which is proposed."""
