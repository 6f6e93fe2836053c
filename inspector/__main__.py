"""`python -m inspector`."""

from inspector.cli.main import main

main()
