"""When garbage is searched for, and what is not searched again.

With torch, torchvision and the index of architectures in memory there are 700,000 objects: a search of all is a quarter
of a second, seconds on a busy machine, in which no other thread runs Python. Streamlit would do it at the end of every
run, also of the fragment that looks every 0.4 seconds how far a job is, and a job in this process would hardly get on.
So that is off (runner.postScriptGC), it is done at the end of whole runs, and what is there after a large import is set
aside.
"""

from __future__ import annotations

import atexit
import gc
import sys
import threading

# Modules imported since the last time: fewer are not worth a search of everything.
_WORTH_IT = 40

_lock = threading.Lock()
_seen = 0


def collect() -> None:
    """Behind a whole run of a page: what it held in circles, pictures and tables among it, goes now."""
    gc.collect()


def set_aside() -> bool:
    """Set what is in memory aside if much was imported since it was done last; whether it was done.

    What is set aside is still freed when nothing refers to it, unless it refers to itself in a circle: so this is done
    a few times in a server's life, never for what visitors bring.
    """
    global _seen
    with _lock:
        count = len(sys.modules)
        if count < _seen + _WORTH_IT:
            return False
        if not _seen:
            # At the end everything is to be found again: extensions complain of what they think was forgotten.
            atexit.register(gc.unfreeze)
        gc.collect()
        gc.freeze()
        _seen = len(sys.modules)
        return True
