"""A pickle machine that executes nothing."""
