"""What becomes of damaged keys: right, wrong, silent or refused, per kind of damage.

Every tensor has its own number, so a tensor on another's place is seen. A case is one architecture with one damage.
right and wrong: shares of the places that the file can fill, after the plan's own answer; asked: the plan waits for a
choice or an acceptance, and is judged again with the true answer given. silent: a complete plan with any wrong tensor,
which must be 0. refused: no plan, or an incomplete one that nothing would export.

    python benchmarks/bench_repair.py
"""

from __future__ import annotations

import random
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
import torchvision

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import Checkpoint, ModuleNode, Origin, StateDict, StateRole, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.keys.diagnose import diagnose
from inspector.keys.report import KeyReport

MODELS = (
    "resnet18",
    "resnet50",
    "densenet121",
    "vgg11_bn",
    "mobilenet_v3_small",
    "efficientnet_b0",
    "convnext_tiny",
    "vit_b_16",
    "swin_t",
    "regnet_y_400mf",
    "squeezenet1_1",
    "googlenet",
)

Shape = tuple[int, ...]
# A damaged file: (key, shape, the target key it truly belongs to, None for tensors that belong nowhere).
File = list[tuple[str, Shape, str | None]]


@dataclass
class Damage:
    """One kind. make: from the intact names; answers: the true choices; accept: what the user would have to accept."""

    name: str
    make: Callable[[dict[str, Shape], random.Random], File]
    answers: dict[str, str] = field(default_factory=dict)
    accept: tuple[str, ...] = ()
    unsolvable: bool = False


def renamed(rename: Callable[[str], str]) -> Callable[[dict[str, Shape], random.Random], File]:
    return lambda own, _: [(rename(n), s, n) for n, s in own.items()]


def shifted(own: dict[str, Shape], _: random.Random) -> File:
    """Every first number of a key one up, as after a layer put in front of each Sequential."""
    return [(re.sub(r"\.(\d+)\.", lambda f: f".{int(f[1]) + 1}.", n, count=1), s, n) for n, s in own.items()]


def opaque(own: dict[str, Shape], rng: random.Random, *, shuffle: bool) -> File:
    names = list(own)
    if shuffle:
        rng.shuffle(names)
    return [(f"p{i:04d}", own[n], n) for i, n in enumerate(names)]


def random_modules(own: dict[str, Shape], rng: random.Random) -> File:
    made: dict[str, str] = {}
    for name in own:
        made.setdefault(name.rpartition(".")[0], f"m{rng.randrange(10**8):08d}")
    return [(f"{made[n.rpartition('.')[0]]}.{n.rpartition('.')[2]}", s, n) for n, s in own.items()]


def without(own: dict[str, Shape], rng: random.Random, prefix: str, share: float) -> File:
    return [(prefix + n, s, n) for n, s in own.items() if rng.random() >= share]


def twins(own: dict[str, Shape], _: random.Random) -> File:
    ours: File = [(f"model.{n}", s, None) for n, s in own.items()]
    return ours + [(f"ema_model.{n}", s, n) for n, s in own.items()]


def detector(own: dict[str, Shape], _: random.Random) -> File:
    extra: File = [("rpn.head.conv.weight", (9, 9, 3, 3), None), ("rpn.head.conv.bias", (9,), None)]
    return [(f"backbone.body.{n}", s, n) for n, s in own.items()] + extra


def other_head(own: dict[str, Shape], _: random.Random) -> File:
    # The head is what has 1000 rows; its tensors belong nowhere then.
    return [(n, (10, *s[1:]), None) if s[:1] == (1000,) else (n, s, n) for n, s in own.items()]


def no_counters(own: dict[str, Shape], _: random.Random) -> File:
    return [(n, s, n) for n, s in own.items() if not n.endswith("num_batches_tracked")]


def profiled(own: dict[str, Shape], _: random.Random) -> File:
    modules = dict.fromkeys(n.rpartition(".")[0] for n in own if "." in n)
    made: File = [(n, s, n) for n, s in own.items()]
    return made + [(f"{m}.{leaf}", (1,), None) for m in modules for leaf in ("total_ops", "total_params")]


def averaged(own: dict[str, Shape], _: random.Random) -> File:
    return [("n_averaged", (), None), *((f"module.{n}", s, n) for n, s in own.items())]


def gamma_beta(name: str, own: dict[str, Shape]) -> str:
    module, _, leaf = name.rpartition(".")
    is_norm = len(own.get(f"{module}.weight", (0, 0))) == 1 and f"{module}.bias" in own
    aliases = {"weight": "gamma", "bias": "beta"}
    return f"{module}.{aliases[leaf]}" if is_norm and leaf in aliases else name


def middle(name: str) -> str:
    first, _, rest = name.partition(".")
    return f"{first}.module.{rest}" if rest.count(".") else name


DAMAGES = (
    Damage("as it is", renamed(lambda n: n)),
    Damage("module.", renamed(lambda n: f"module.{n}")),
    Damage("module.module.", renamed(lambda n: f"module.module.{n}")),
    Damage("_orig_mod.module.", renamed(lambda n: f"_orig_mod.module.{n}")),
    Damage("model.", renamed(lambda n: f"model.{n}")),
    Damage("net_G.enc.", renamed(lambda n: f"net_G.enc.{n}")),
    Damage("mid-key module.", renamed(middle)),
    Damage("n_averaged + module.", averaged),
    Damage("total_ops, total_params", profiled),
    Damage("no num_batches_tracked", no_counters),
    Damage("gamma, beta", lambda own, _: [(gamma_beta(n, own), s, n) for n, s in own.items()]),
    Damage("norm.1", renamed(lambda n: re.sub(r"\.(norm|conv)([12])\.", r".\1.\2.", n))),
    Damage("numbers + 1", shifted, answers={"index-shift": "shifted"}),
    Damage(
        "module. + numbers + 1",
        lambda o, r: [(f"module.{k}", s, n) for k, s, n in shifted(o, r)],
        {"index-shift": "shifted"},
    ),
    Damage("module. - 10 %", lambda o, r: without(o, r, "module.", 0.1)),
    Damage("net. - 50 %", lambda o, r: without(o, r, "net.", 0.5)),
    Damage("model. + ema_model.", twins, answers={"twins": "ema_model"}),
    Damage("backbone.body. + heads", detector, accept=("extra-tensors",)),
    Damage("10 classes", other_head, accept=("head-mismatch",)),
    Damage("random module names", random_modules),
    Damage("opaque, in order", lambda o, r: opaque(o, r, shuffle=False)),
    Damage("opaque, shuffled", lambda o, r: opaque(o, r, shuffle=True), unsolvable=True),
)

# A file of one architecture against its sibling: nothing may come out whole.
SIBLINGS = (("resnet34", "resnet50"), ("resnet34", "resnet18"), ("vgg13", "vgg11"), ("densenet169", "densenet121"))


def shapes(name: str) -> dict[str, Shape]:
    options = {"init_weights": False} if name == "googlenet" else {}
    model = getattr(torchvision.models, name)(weights=None, **options)
    return {n: tuple(t.shape) for n, t in model.state_dict().items()}


def as_checkpoint(file: File) -> Checkpoint:
    tensors = tuple(
        TensorInfo(name=n, path=(n,), shape=s, dtype="float32", nbytes=0, storage_id=None) for n, s, _ in file
    )
    state = StateDict(
        path=(), role=StateRole.WEIGHTS, why="", kind="dict", tensors=tensors, modules=ModuleNode(name="", path="")
    )
    root = Value(kind=ValueKind.MAPPING, type_name="dict", says="")
    return Checkpoint(
        origin=Origin(name="case.pth", nbytes=0),
        format="torch-zip",
        format_says="",
        root=root,
        tensors=tensors,
        state_dicts=(state,),
        source=BufferSource(b""),
    )


def as_target(own: dict[str, Shape]) -> Target:
    tensors = tuple(TargetTensor(name=n, shape=s, dtype="float32") for n, s in own.items())
    return Target(label="the target", kind=TargetKind.FILE, tensors=tensors)


def judge(report: KeyReport, file: File) -> tuple[int, int]:
    """(right, wrong) tensors of the plan."""
    truth = {key: place for key, _, place in file}
    steps = report.plan.steps if report.plan else ()
    placed = [(s.source, s.target) for s in steps if s.source is not None and s.target is not None]
    right = sum(1 for source, place in placed if truth[source] == place)
    return right, len(placed) - right


def main() -> int:
    torch.set_num_threads(1)
    torch.set_default_device("cpu")
    sizes = {name: shapes(name) for name in MODELS}
    cases = silent_total = right_total = wrong_total = placeable_total = 0
    seconds: list[float] = []
    rules: list[int] = []
    print(f"{len(MODELS)} architectures, one seed each; right and wrong in % of placeable tensors\n")
    print(
        f"{'damage':26} {'right':>6} {'wrong':>6} {'whole':>7} {'asked':>6} {'refused':>8} {'silent':>7} {'rules':>6}"
    )
    for damage in DAMAGES:
        right = wrong = placeable = whole = asked = refused = silent = 0
        used: list[int] = []
        for name, own in sizes.items():
            file = damage.make(own, random.Random(f"{name}{damage.name}"))
            checkpoint, target = as_checkpoint(file), as_target(own)
            started = time.perf_counter()
            report = diagnose(checkpoint, target)
            seconds.append(time.perf_counter() - started)
            silent += bool(report.plan and report.plan.complete and judge(report, file)[1])
            waits = report.plan is not None and (report.plan.ambiguities or report.plan.needs_accept)
            if waits:
                asked += 1
                open_questions = {a.id for a in report.plan.ambiguities}
                answers = {k: v for k, v in damage.answers.items() if k in open_questions}
                report = diagnose(checkpoint, target, accept=damage.accept, choose=answers)
                silent += bool(report.plan and report.plan.complete and judge(report, file)[1])
            good, bad = judge(report, file)
            right, wrong = right + good, wrong + bad
            placeable += sum(1 for _, _, place in file if place is not None)
            complete = report.plan is not None and report.plan.complete
            whole, refused = whole + complete, refused + (not complete)
            if complete:
                used.append(len(report.plan.rules))
        cases += len(sizes)
        silent_total += silent
        if not damage.unsolvable:
            right_total, wrong_total, placeable_total = (
                right_total + right,
                wrong_total + wrong,
                placeable_total + placeable,
            )
        rules += used
        median = f"{statistics.median(used):.0f}" if used else "-"
        print(
            f"{damage.name:26} {100 * right / placeable:6.1f} {100 * wrong / placeable:6.1f} "
            f"{whole:4d}/{len(sizes):<2d} {asked:6d} {refused:8d} {silent:7d} {median:>6}"
        )
    for file_name, target_name in SIBLINGS:
        own = shapes(file_name)
        report = diagnose(as_checkpoint([(n, s, n) for n, s in own.items()]), as_target(shapes(target_name)))
        whole = bool(report.plan and report.plan.complete)
        silent_total += whole
        cases += 1
        print(f"{file_name + ' as ' + target_name:26} {'whole' if whole else 'refused'}: {report.says[:90]}")
    share = (100 * right_total / placeable_total, 100 * wrong_total / placeable_total)
    print(
        f"\n{cases} cases: right {share[0]:.1f} %, wrong {share[1]:.2f} % of placeable tensors; silent {silent_total}."
    )
    middle_ms, most_ms = 1000 * statistics.median(seconds), 1000 * max(seconds)
    print(
        f"Rules in the median {statistics.median(rules):.0f}; {middle_ms:.1f} ms in the median, {most_ms:.0f} at most."
    )
    return 1 if silent_total else 0


if __name__ == "__main__":
    raise SystemExit(main())
