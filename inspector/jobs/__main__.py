"""`python -m inspector.jobs`: the broker, started by the server."""

import signal

from inspector.jobs.broker import main
from inspector.openmp import share_processors

if __name__ == "__main__":
    # Ctrl-C in a terminal goes to everybody; the server decides when its broker ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    share_processors()
    main()
