"""Shards with an index."""
