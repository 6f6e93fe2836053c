"""Heat maps as files: arrays, a manifest, and the command line that makes the same bytes again."""
