"""What a test asks of other processes: work that leaves a note of each call, and a program that is killed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import inspector.giants.measure
import inspector.giants.pairs
from inspector.compare.diff import compare_checkpoints
from inspector.giants.pairs import PairsItem, compare_piece
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


def compared(item: PairsItem) -> Outcome:
    """The same of a piece of two checkpoints."""
    folder = Path(os.environ["LOG"])
    names = "+".join(one.name for one, _ in item.tensors)
    (folder / f"{names}@0-{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(float(os.environ.get("SLOWER", "0")))
    return compare_piece(item)


def calls(folder: Path) -> list[str]:
    """Which pieces were worked on, each as often as it was."""
    return sorted(path.name.rsplit("-", 2)[0] for path in folder.iterdir())


def main(file: str, store: str, most_nbytes: str, executor: str, other: str = "") -> None:
    """Two workers and a store; killed from outside. other: a second checkpoint, to be compared with the first."""
    inspector.giants.measure.measure_piece = logged
    inspector.giants.pairs.compare_piece = compared
    checkpoint = open_checkpoint(file)
    with engine_of(executor, 2) as engine:
        kept, most = open_store(store), int(most_nbytes)
        if other:
            pairwise = inspector.giants.pairs.PairsByPieces(engine, kept, most_nbytes=most)
            compare_checkpoints(checkpoint, open_checkpoint(other), pairwise=pairwise)
        else:
            inspector.giants.measure.read_in_pieces(
                checkpoint, checkpoint.tensors, engine=engine, store=kept, most_nbytes=most
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
