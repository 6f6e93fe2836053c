"""Heavy work in processes that may die: a broker, started and watched by the server, owns workers with torch in memory.

    client.py    the server's end: asks, waits, starts the broker again        (in the web process, without torch)
    broker.py    which job runs where and when: queue, memory, deadlines       (`python -m inspector.jobs`)
    pool.py      the worker processes, watched
    worker.py    one job at a time, behind a wall of memory
    kinds/       what can be asked for: an entry each, in `kinds/table.py`

A job is a plain description: which kind, of what, with which parameters. Its result lies under the digest of that, so
that an equal question is answered from there, also after a restart.
"""
