"""Modules of families that no library builds, in plain torch, named as the families' templates name them."""
