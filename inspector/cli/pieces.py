"""Options of the commands that take pictures by pieces: where these run, and which share of them."""

from __future__ import annotations

from typing import Annotated

import typer

PiecesExecutor = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="WHERE",
        help='By pieces: in "processes" (if left out), in "threads", or on a Dask cluster: tcp://host:8786.',
    ),
]
PiecesJobs = Annotated[
    int,
    typer.Option(help="By pieces: processes side by side, a model in each; 0: one per processor.", min=0, max=256),
]
PiecesPart = Annotated[
    str,
    typer.Option("--part", metavar="I/N", help="Only this share of the pictures, for arrays of jobs: 3/16."),
]
PiecesThreads = Annotated[
    int, typer.Option(help="That torch computes with; its own choice if left out, by pieces 1.", min=0, max=1024)
]
