"""numpy's array files and archives."""
