"""A package, so that the fixtures of its own scope end with its last test: tests/conftest.py runs these tests first."""
