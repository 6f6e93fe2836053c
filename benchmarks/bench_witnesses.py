"""What the numbers say of orders inside tensors, over trained networks, and that nothing wrong is ever said.

    python -m benchmarks.witnesses.train FOLDER        (half a minute of one processor for each network)
    python benchmarks/bench_witnesses.py FOLDER [NAME ...]

Every network is arranged in each layout that a question offers and diagnosed as any file; then its witnesses are heard.
Right: an answer that is spoken for makes what the witness looks at as it was before, and none that does is spoken
against. Wrong: anything else that is said; the goal is 0, the exit code is 1 otherwise. The same of each network before
its training, of which nothing may be said. Thresholds were set in sight of the networks marked `tuned` alone.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

# Run as a file, as `make bench` does.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.witnesses.layouts import (
    Case,
    State,
    attention_cases,
    flatten_cases,
    gate_cases,
    patch_cases,
    rotary_cases,
)
from benchmarks.witnesses.networks import NETWORKS, Pile
from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.checkpoint.raw_tensor import read_raw
from inspector.checkpoint.types import Checkpoint
from inspector.keys.apply import make_one
from inspector.keys.diagnose import diagnose
from inspector.keys.report import RepairPlan
from inspector.keys.witnesses.hearing import hear
from inspector.keys.witnesses.types import Bearing, Statement
from inspector.readers import open_checkpoint

SAMPLES = Path(__file__).resolve().parents[1] / "sample_models" / "weights"
RIGHT, WRONG, NOTHING = "right", "wrong", "nothing"


def cases_of(name: str, state: State) -> Iterator[Case]:
    """Every layout of one network."""
    shape = NETWORKS[name]
    if isinstance(shape, Pile):
        yield from flatten_cases(state)
        return
    yield from attention_cases(state, shape.heads, shape.kv or shape.heads)
    if shape.gate:
        yield from gate_cases(state)
    if shape.rotary:
        yield from rotary_cases(state, shape.heads, shape.rotary)
    if shape.patch:
        yield from patch_cases(state)


def is_right(case: Case, statement: Statement, plans: dict[str, RepairPlan], checkpoint: Checkpoint) -> bool:
    """Whether each answer that is spoken for makes what the witness sees, and each spoken against does not."""
    infos = {t.name: t for t in checkpoint.weights.tensors}
    sees = case.sees[statement.witness]
    names = [name for name in case.target if sees(name)]
    for option, bearing in statement.options:
        steps = {s.target: s for s in plans[option].steps} if option in plans else {}
        same = bool(names)
        for name in names:
            made = make_one(steps[name], lambda n: read_raw(checkpoint, infos[n])).numbers if name in steps else None
            want = case.target[name]
            if case.asks == "fused-order" and made is not None:
                third = (
                    slice(-len(want) // 3, None)
                    if statement.witness == "value-rows"
                    else slice(len(want) // 3, 2 * len(want) // 3)
                )
                made, want = made[third], want[third]
            if case.asks == "gate-order" and made is not None:
                made, want = made[: len(want) // 2], want[: len(want) // 2]
            same = same and made is not None and np.array_equal(made, want)
        if (bearing is Bearing.FOR and not same) or (bearing is Bearing.AGAINST and same):
            return False
    return True


def try_case(case: Case, folder: Path) -> Iterator[tuple[str, str, str, float]]:
    """(witness, what came of it, how many layers agree, seconds) for each witness that is asked about this question."""
    path = folder / "file.safetensors"
    save_file(case.file, path)
    checkpoint = open_checkpoint(path)
    target = Target(
        label="the network",
        kind=TargetKind.FILE,
        tensors=tuple(TargetTensor(name=n, shape=t.shape, dtype="float32") for n, t in case.target.items()),
    )
    plan = diagnose(checkpoint, target).plan
    question = next((q for q in plan.ambiguities if q.id.partition(":")[0] == case.asks), None) if plan else None
    if question is None or plan is None:
        yield "", f"not asked: {case.asks}", "", 0.0
        return
    start = time.process_time()
    heard = {s.witness: s for s in hear(checkpoint, plan, target) if s.question == question.id}
    seconds = time.process_time() - start
    plans = {}
    for option, _ in question.options:
        made = diagnose(checkpoint, target, choose={question.id: option}).plan
        if made is not None:
            plans[option] = made
    for witness in case.sees:
        said = heard.get(witness)
        if said is None or said.is_silent:
            yield witness, NOTHING, "", seconds
        else:
            came = RIGHT if is_right(case, said, plans, checkpoint) else WRONG
            yield witness, came, f"{said.agree} of {said.layers}: {said.says}", seconds


def main(folder: Path, names: list[str]) -> int:
    """Print each network's row, then the sums by witness. 1 where anything wrong was said."""
    sums: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for name in names:
        shape = NETWORKS[name]
        for kind in ("", ".initial"):
            path = folder / f"{name}{kind}.safetensors"
            if not path.exists():
                print(f"{name}{kind}: not there")
                continue
            rows: dict[str, Counter[str]] = defaultdict(Counter)
            seconds: list[float] = []
            with tempfile.TemporaryDirectory() as made:
                for case in cases_of(name, load_file(path)):
                    for witness, came, agree, took in try_case(case, Path(made)):
                        key = f"{case.asks}/{witness}"
                        rows[key][came] += 1
                        seconds.append(took)
                        group = "never trained" if kind else "tuned on" if shape.tuned else "held out"
                        sums[group, key][came] += 1
                        if came == WRONG or "-v" in sys.argv:
                            print(f"    {came}: {key} truth {case.truth}: {agree}")
            said = "; ".join(f"{key} {dict(counts)}" for key, counts in rows.items())
            print(
                f"{name}{kind}{' *' if shape.tuned else ''}: {said}; at most {max(seconds, default=0):.2f} s",
                flush=True,
            )
    wrong = 0
    for (group, key), counts in sorted(sums.items()):
        print(f"| {group} | {key} | {counts[RIGHT]} | {counts[WRONG]} | {counts[NOTHING]} | {sum(counts.values())} |")
        wrong += counts[WRONG] + (counts[RIGHT] if group == "never trained" else 0)
    return 1 if wrong else 0


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "-v"]
    sys.exit(main(Path(given[0]), given[1:] or list(NETWORKS)))
