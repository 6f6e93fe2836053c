"""What readers notice about any checkpoint, as findings: one subject per file."""
