"""What a test asks of other processes: work that leaves a note of each picture, and a program that is killed."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path

from inspector.cam.runs import ReadyModel
from inspector.cam.sweeping.held import Pictures
from inspector.cam.sweeping.run import Running
from inspector.cli.explaining import load
from inspector.evaluate import scores, work
from inspector.evaluate.labels import open_class_folders
from inspector.evaluate.parts import score_share
from inspector.sweep.engines import engine_of
from inspector.sweep.piece import Outcome
from inspector.sweep.store import open_store


class Noted(work.Scoring):
    """Leaves a file in $LOG for each piece, called by its first picture."""

    def __call__(self, item: Pictures) -> Outcome:
        name = item.paths[0].replace("/", "_")
        (Path(os.environ["LOG"]) / f"{name}-{len(item.paths)}-{os.getpid()}-{time.monotonic_ns()}").touch()
        return super().__call__(item)


def loading(file: str) -> partial[ReadyModel]:
    """What opens the model, in any process."""
    return partial(load, file, state="", target="", preprocessing="", names="")


def main(file: str, folder: str, store: str, executor: str) -> None:
    """Two workers and a store; killed from outside."""
    scores.Scoring = Noted  # type: ignore[misc]
    import torch

    torch.set_num_threads(1)
    ready = loading(file)()
    with engine_of(executor, 2) as engine:
        running = Running(engine=engine, reopen=loading(file))
        score_share(ready, open_class_folders(Path(folder)), running, open_store(store))


if __name__ == "__main__":
    main(*sys.argv[1:])
