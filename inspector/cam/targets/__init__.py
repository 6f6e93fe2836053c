"""What is asked of an answer, and how an answer becomes scores."""
