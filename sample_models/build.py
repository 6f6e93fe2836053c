"""Makes the sample checkpoints.

python sample_models/build.py derive   the family of files, from the committed weights; seconds, at set-up
python sample_models/build.py train    the weights themselves; minutes, by hand
python sample_models/build.py train-transformer    those of the vision transformer; minutes, by hand
python sample_models/build.py labelled OUT.zip     pictures in class folders; a second, when the Evaluation page asks
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
if str(HERE.parent) not in sys.path:
    # Run as a script, only this folder is on the path; the package is its parent's child.
    sys.path.insert(0, str(HERE.parent))


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand; 0 when everything was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    derive = commands.add_parser("derive", help="write the family of sample files")
    derive.add_argument("--output", type=Path, default=HERE / "files")
    derive.add_argument("--pictures", type=Path, default=HERE / "pictures")
    train = commands.add_parser("train", help="train the sample classifier (a few minutes on two cores)")
    train.add_argument("--start", type=Path, help="weights of an earlier round: run only the last one")
    tokens = commands.add_parser("train-transformer", help="train the sample vision transformer (likewise)")
    for command in (train, tokens):
        command.add_argument("--output", type=Path, default=HERE / "weights")
        command.add_argument("--seed", type=int, default=7)
        command.add_argument("--share", type=float, default=1.0, help="fraction of the full number of batches")
        command.add_argument("--threads", type=int, default=1)
    labelled = commands.add_parser("labelled", help="draw a small labelled set as a zip of class folders")
    labelled.add_argument("output", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "labelled":
        from sample_models.labelled import write_labelled

        write_labelled(options.output)
        return 0
    return _derive(options) if options.command == "derive" else _train(options)


def _train(options: argparse.Namespace) -> int:
    import torch

    from sample_models import train, train_tokens

    torch.set_num_threads(options.threads)
    if options.command == "train":
        figures = train.train(options.output, seed=options.seed, share=options.share, start=options.start)
    else:
        figures = train_tokens.train(options.output, seed=options.seed, share=options.share)
    for name, value in figures.items():
        print(f"{name}: {value:.4g}")
    return 0


def _derive(options: argparse.Namespace) -> int:
    from sample_models.family import derive

    started = time.monotonic()
    written = derive(options.output, pictures=options.pictures)
    print(f"{len(written)} files in {options.output}, {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
