"""What batch norms prove of the places of tensors, over trained networks, and that nothing wrong is ever proved.

    python -m benchmarks.certificate.train FOLDER        (a minute for each network)
    python benchmarks/bench_certificate.py FOLDER [NAME ...]

For each network, with its graph and by the order of definition alone: how many tensors are proved, contradicted and
left open as they are; then every exchange of two tensors of one shape (kernels, norms, single vectors), every
transposed square kernel, every tensor with its channels in another order. Wrongly proved: a tensor that is not its own
and is said to be proved; the goal is 0, the exit code is 1 otherwise. Noticed: contradicted, or its chain is broken.
Last: the file with all tensors of each shape shuffled, and one that was never trained.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

# Run as a file, as `make bench` does.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.certificate.networks import NETWORKS, TUNED_ON
from benchmarks.certificate.wrong import State, Wrong, all_wrong, shuffled
from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.graph.from_forward import graph_of_forward
from inspector.keys.certificate import examine
from inspector.keys.certificate.chains import Sums, sums_of
from inspector.keys.certificate.examine import Examiner
from inspector.keys.certificate.from_graph import wiring_of
from inspector.keys.certificate.from_names import wiring_by_order
from inspector.keys.certificate.types import Certificate, Standing, Wiring
from inspector.keys.certificate.verdicts import certify

# A kernel is summed once: the faults hand on the same arrays.
_SUMS: dict[tuple[int, bool, int], tuple[NDArray[np.generic], tuple[Sums, ...]]] = {}


def _summed(kernel: NDArray[np.generic], *, transposed: bool = False, groups: int = 1) -> tuple[Sums, ...]:
    key = (id(kernel), transposed, groups)
    if key not in _SUMS:
        # The array is kept, so that none gets another's identity.
        _SUMS[key] = (kernel, sums_of(kernel, transposed=transposed, groups=groups))
    return _SUMS[key][1]


examine.sums_of = _summed  # type: ignore[assignment]

SAMPLES = Path(__file__).resolve().parents[1] / "sample_models" / "weights"
_WHOLE = 3  # of each kind of fault, for which the whole network is certified: to see whether it is noticed


@dataclass(slots=True)
class Row:
    """One network by one wiring."""

    name: str
    by: str
    tensors: int = 0
    chains: str = ""
    intact: Counter[str] = field(default_factory=Counter)
    broken: int = 0
    wrong: int = 0
    wrongly_proved: list[str] = field(default_factory=list)
    noticed: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    blamed: int = 0
    shuffled: str = ""
    untrained: str = ""
    seconds: float = 0.0


def certificate_of(wiring: Wiring, state: State, names: list[str], *, near: State | None = None) -> Certificate:
    """near: only the chains that touch these tensors, the others standing in as rivals."""

    def load(name: str) -> NDArray[np.float64]:
        return state[name].astype(np.float64)

    examiner = Examiner(wiring, load, {name: tensor.shape for name, tensor in state.items()})
    if near is not None:
        examiner.chains = [chain for chain in examiner.chains if near.keys() & set(_tensors(chain.link))]
    shapes = {state[chain.link.kernel].shape for chain in examiner.chains if chain.link.kernel}
    for kernel in dict.fromkeys(link.kernel for link in wiring.links if link.kernel):
        if state[kernel].shape in shapes:
            examiner.look(kernel, state[kernel])
    return certify(examiner, names)


def _tensors(link: object) -> Iterator[str]:
    yield from (link.kernel, link.bias)  # type: ignore[attr-defined]
    for norm in (link.norm, *(feed.norm for feed in link.feeds if feed.norm)):  # type: ignore[attr-defined]
        yield from (norm.weight, norm.bias, norm.mean, norm.var)


def measure(name: str, model: nn.Module, state: State, side: int) -> Iterator[Row]:
    """With the graph, then without."""
    names = list(model.state_dict())
    fresh = {n: t.numpy().copy() for n, t in model.state_dict().items()}
    tensors = tuple(TargetTensor(name=n, shape=tuple(t.shape)) for n, t in model.state_dict().items())
    blank = model.to("meta").eval()
    graph = graph_of_forward(blank, (torch.empty(1, 3, side, side, device="meta"),))
    order = wiring_by_order(Target(label=name, kind=TargetKind.KEYS, tensors=tensors))
    _SUMS.clear()
    for by, wiring in (("graph", wiring_of(graph)), ("order", order)):
        start = time.process_time()
        found = certificate_of(wiring, state, names)
        row = Row(name=name, by=by, tensors=sum(state[n].ndim > 0 for n in names), seconds=time.process_time() - start)
        row.chains = f"{found.held} of {found.chains}"
        row.broken = len(found.broken)
        for one in found.tensors:
            if state[one.name].ndim:
                row.intact[one.standing.value] += 1
        for wrong in all_wrong({n: state[n] for n in names}):
            _try(row, wiring, state, names, wrong)
        for column, other in (("shuffled", shuffled(state, 1)), ("untrained", fresh)):
            whole = certificate_of(wiring, other, names)
            proved = [t.name for t in whole.tensors if t.standing is Standing.PROVED]
            if column == "shuffled":
                row.wrongly_proved += [f"shuffled {n}" for n in proved if not np.array_equal(other[n], state[n])]
            word = "contradicted" if whole.contradicts else "left open"
            setattr(row, column, f"{word}, {len(proved)} proved")
        yield row


def _try(row: Row, wiring: Wiring, state: State, names: list[str], wrong: Wrong) -> None:
    changed = {n: t for n, t in wrong.changed.items() if not np.array_equal(t, state[n])}
    if not changed:
        return
    row.wrong += 1
    whole = row.tried[wrong.kind] < _WHOLE
    found = certificate_of(wiring, {**state, **changed}, names, near=None if whole else changed)
    standing = {one.name: one.standing for one in found.tensors}
    row.wrongly_proved += [f"{wrong.kind}: {n}" for n in changed if standing[n] is Standing.PROVED]
    if whole:
        row.tried[wrong.kind] += 1
        row.noticed[wrong.kind] += found.contradicts
        row.blamed += sum(s is Standing.CONTRADICTED and n not in changed for n, s in standing.items())


def _networks(folder: Path) -> Iterator[tuple[str, Callable[[], nn.Module], Path, int]]:
    import torchvision

    def shapes() -> nn.Module:
        return torchvision.models.shufflenet_v2_x0_5(num_classes=4)

    yield "sample: shapes (shufflenet)", shapes, SAMPLES / "shapes.safetensors", 64
    for name, build in NETWORKS.items():
        yield name, build, folder / f"{name}.safetensors", 32


def main() -> int:
    """Print a row per network and wiring, and the sums."""
    from safetensors.numpy import load_file

    torch.set_num_threads(1)
    if len(sys.argv) < 2:
        print("No folder of trained networks is named: the sample alone.")
    folder, wanted = Path(sys.argv[1] if len(sys.argv) > 1 else "."), sys.argv[2:]
    rows: list[Row] = []
    columns = "network|by|tensors|chains held|proved|contradicted|open|wrong|wrongly proved|shuffled|never trained|s"
    print(f"| {' | '.join(columns.split('|'))} |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- | ---: |")
    for name, build, path, side in _networks(folder):
        if (wanted and not any(w in name for w in wanted)) or not path.exists():
            continue
        model = build()
        for row in measure(name, model, load_file(path), side):
            rows.append(row)
            mark = " *" if name in TUNED_ON else ""
            print(
                f"| {row.name}{mark} | {row.by} | {row.tensors} | {row.chains} | {row.intact['proved']} | "
                f"{row.intact['contradicted'] + row.broken} | {row.intact['left open']} | {row.wrong:,} | "
                f"{len(row.wrongly_proved)} | {row.shuffled} | {row.untrained} | {row.seconds:.2f} |",
                flush=True,
            )
            for text in row.wrongly_proved[:5]:
                print("   WRONGLY PROVED", text, flush=True)
    tried, noticed = Counter[str](), Counter[str]()
    for row in rows:
        if row.by == "graph":
            tried += row.tried
            noticed += row.noticed
    print("\nNoticed, by the graph (a sample of each kind):")
    for kind, n in tried.items():
        print(f"| {kind} | {noticed[kind]} of {n} |")
    wrong = sum(len(row.wrongly_proved) for row in rows)
    blamed, tried_in_all = sum(row.blamed for row in rows), sum(row.wrong for row in rows)
    print(f"\nwrongly proved: {wrong} of {tried_in_all:,}; innocent tensors contradicted: {blamed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
