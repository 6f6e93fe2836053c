"""What a test asks of other processes: work that leaves a note of each call, and a program that is killed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import inspector.giants.measure
from inspector.giants.plan import Item
from inspector.giants.work import measure_piece
from inspector.readers import open_checkpoint
from inspector.sweep.engines import engine_of
from inspector.sweep.piece import Outcome
from inspector.sweep.store import open_store


def logged(item: Item) -> Outcome:
    """The work, with a file in $LOG that says of which tensors and from where."""
    folder = Path(os.environ["LOG"])
    names = "+".join(f"{one.tensor.name}@{one.first}" for one in item.stretches)
    (folder / f"{names}-{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(float(os.environ.get("SLOWER", "0")))
    return measure_piece(item)


def calls(folder: Path) -> list[str]:
    """Which pieces were worked on, each as often as it was."""
    return sorted(path.name.rsplit("-", 2)[0] for path in folder.iterdir())


def main(file: str, store: str, most_nbytes: str, executor: str) -> None:
    """Two workers and a store; killed from outside."""
    inspector.giants.measure.measure_piece = logged
    checkpoint = open_checkpoint(file)
    with engine_of(executor, 2) as engine:
        inspector.giants.measure.read_in_pieces(
            checkpoint, checkpoint.tensors, engine=engine, store=open_store(store), most_nbytes=int(most_nbytes)
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
