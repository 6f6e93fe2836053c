"""Bytes behind addresses: names resolved once, every address checked, and connections to exactly the checked ones."""
