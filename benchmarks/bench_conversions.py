"""Conversions between libraries, proved by equal outputs with random weights: docs/conversions.md.

    python benchmarks/bench_conversions.py [WORD ...] [--json FILE] [--markdown FILE]

For every pair, in both directions: both networks with random weights and random statistics in every norm; one's state
dict saved, diagnosed against the other, questions answered as somebody who knows both networks would (counted),
repaired, loaded strictly, and both run on one input in float32 and float64. WORD: only pairs with it in their name
or libraries. Needs timm, transformers, open_clip_torch, flax and keras beside this program; a pair whose library is
missing is left out and said. Exit code 1 where outputs differ and nothing was said.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.conversions.pairs import all_pairs
from benchmarks.conversions.report import line, markdown
from benchmarks.conversions.run import Result, Row, convert, directions


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true")
    told = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    rows: list[Row] = []
    for pair in all_pairs():
        for ours, theirs in directions(pair):
            name = f"{pair.id}: {ours.library} -> {theirs.library}"
            if told.words and not all(word.lower() in name.lower() for word in told.words):
                continue
            try:
                row = convert(pair, ours, theirs)
            except ImportError as error:
                print(f"left out    {name}: {error}")
                continue
            except Exception as error:
                if told.verbose:
                    raise
                row = Row(
                    pair=pair.id, ours=ours.library, theirs=theirs.library, result=Result.BROKEN, says=repr(error)[:300]
                )
            rows.append(row)
            print(line(row, verbose=told.verbose), flush=True)
    print(", ".join(f"{n} {result}" for result, n in Counter(row.result for row in rows).items()))
    if told.json:
        told.json.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1), encoding="utf-8")
    if told.markdown:
        told.markdown.write_text(markdown(rows), encoding="utf-8")
    return int(any(row.result in (Result.SILENT, Result.BROKEN) for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
