"""Reports as text, JSON, figures and tables."""
