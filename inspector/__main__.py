"""`python -m inspector`."""

from inspector.cli.main import main

# Processes that a scan starts import this module again.
if __name__ == "__main__":
    main()
