"""What stays for good is not searched for garbage again.

Streamlit collects all garbage at the end of every run, of a fragment's too. With torch, torchvision and the index of
architectures in memory that is 700,000 objects, a quarter of a second in which no other thread runs Python: the work
that is watched would get less of the processor than its watching. So what is there after a large import is set aside.
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
