"""A second set of key mismatches, as a stranger would think them up; written without the product's source."""
