"""The Repair page, one file per part of it: target, choices, lists, proofs, export."""
