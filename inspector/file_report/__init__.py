"""Everything that is known of one file as one report to hand on: as a page of its own, as JSON, and read back."""
