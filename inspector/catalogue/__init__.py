"""The catalogue of a store: its files, tensors and findings as tables that a question in SQL is asked of."""
