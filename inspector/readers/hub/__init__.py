"""Repositories of the Hugging Face hub, read by its HTTP API and by ranges: nothing is downloaded to look."""
