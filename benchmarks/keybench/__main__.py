"""What becomes of damaged keys: right, wrong, silent or refused, per kind of damage and per tool.

Every tensor has its own numbers, so a tensor on another's place is seen by its value. A case is one architecture, one
corruption, one seed. silent: a complete plan or a strict load with any wrong tensor, or of a file that nobody can
repair; it must be 0. right, wrong: in percent of the tensors that the generator says can be placed.

    python -m benchmarks.keybench                     everything, from the folder of the repository
    python -m benchmarks.keybench --only "numbers + 1" --architectures torchvision/resnet18 bert_tiny --peers none
    python -m benchmarks.keybench --twins             every architecture of the index against itself

Other tools are used where they are installed: `python -m pip install -e ".[bench]"`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.keybench import report
from benchmarks.keybench.architectures import Architecture, architectures
from benchmarks.keybench.peers import peers
from benchmarks.keybench.run import OURS, Settings, run_one, run_pairs
from benchmarks.keybench.scaling import timings
from benchmarks.keybench.score import Score
from benchmarks.keybench.selftwins import plain_entries, twins


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=(), help="corruptions to run, by their names")
    parser.add_argument("--architectures", nargs="*", default=(), help="architectures to run, by their names")
    parser.add_argument("--peers", choices=("all", "fast", "none"), default="all", help="fast: without time limits")
    parser.add_argument("--slow-seconds", type=float, default=10.0, help="time limit per case of a slow tool")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--held-out", action="store_true", help="run what is held out as well")
    parser.add_argument("--every", type=int, default=1, help="of the cases one in so many, evenly")
    parser.add_argument("--no-logits", action="store_true", help="do not build the networks to ask them")
    parser.add_argument("--list", action="store_true", help="also list every case that is not as it should be")
    parser.add_argument("--twins", action="store_true", help="only every architecture of the index against itself")
    chosen = parser.parse_args()
    # torch and numpy would else take every core in every process.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if chosen.twins:
        return _twins()
    found, missing = peers()
    for says in missing if chosen.peers != "none" else ():
        print(says)
    kept = tuple(p for p in found if chosen.peers == "all" or (chosen.peers == "fast" and not p.slow))
    settings = Settings(
        peers=kept,
        only=chosen.only,
        slow_seconds=chosen.slow_seconds,
        logits=not chosen.no_logits,
        held_out=chosen.held_out,
        every=chosen.every,
    )
    nets = architectures(lambda name: not chosen.architectures or name in chosen.architectures)
    nets = [net for net in nets if chosen.held_out or not net.held_out]
    scores = list(_all(nets, settings, chosen.processes, with_pairs=not chosen.architectures))
    sections = {
        "Every case": report.every_case(scores),
        "By tool": report.by_tool(scores, [peer.name for peer in kept if peer.own]),
        "Looked at and held out": report.held_out(scores),
        "By corruption": report.by_corruption(scores),
        "Evidence of complete repairs": report.certificates(scores),
    }
    if not chosen.only and not chosen.architectures:
        sections["Time by number of keys"] = report.times(list(timings()))
    for title, lines in sections.items():
        print(f"\n## {title}\n", *lines, sep="\n")
    if chosen.list:
        print("\n## Not as it should be\n", *report.troubles(scores), sep="\n")
    return 1 if any(score.silent for score in scores if score.tool == OURS) else 0


def _all(nets: list[Architecture], settings: Settings, processes: int, *, with_pairs: bool) -> Iterator[Score]:
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        later = [pool.submit(run_one, net, settings) for net in nets]
        more = [pool.submit(run_pairs, settings)] if with_pairs else []
        for number, task in enumerate([*later, *more], start=1):
            print(f"{number} of {len(later) + len(more)}", file=sys.stderr)
            yield from task.result()


def _twins() -> int:
    failed = checked = 0
    longest = 0.0
    for twin in twins(plain_entries()):
        checked += 1
        longest = max(longest, twin.seconds)
        if twin.failure:
            failed += 1
            print(f"{twin.label}{' under module.' if twin.wrapped else ''}: {twin.failure}")
    print(f"{checked:,} checked, {failed:,} other than they should be; {1000 * longest:.0f} ms at most.")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
