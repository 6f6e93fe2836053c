"""What workers do, a file for each matter; `table.py` lists it. Only workers import the files beside the table."""
