"""The face for a page without a server: the same questions as the command line's, asked from JavaScript, answered in
JSON. Nothing here needs NumPy, torch or a package of the command line."""
