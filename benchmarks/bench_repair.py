"""What becomes of damaged keys: right, wrong, silent or refused, per kind of damage.

Every tensor has its own number, so a tensor on another's place is seen. A case is one architecture with one damage.
A damage that changes nothing in an architecture is no case. right, wrong: shares of the tensors that the generator says
can be placed. asked: the plan waits for a choice or an acceptance, and is judged again with the true answer given;
controls that nobody can solve are accepted too, and must be refused all the same. silent: a complete plan with any
wrong tensor, or for such a control at all, which must be 0. In the same run, what others do, written anew from their
descriptions.

    python benchmarks/bench_repair.py
"""

from __future__ import annotations

import math
import random
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
import torchvision

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import Checkpoint, ModuleNode, Origin, StateDict, StateRole, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.keys.diagnose import diagnose
from inspector.keys.report import KeyReport, StepKind

MODELS = (
    "resnet18",
    "resnet50",
    "resnext50_32x4d",
    "densenet121",
    "vgg11_bn",
    "alexnet",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "mnasnet0_5",
    "shufflenet_v2_x0_5",
    "efficientnet_b0",
    "convnext_tiny",
    "vit_b_16",
    "swin_t",
    "swin_v2_t",
    "maxvit_t",
    "regnet_y_400mf",
    "squeezenet1_1",
    "googlenet",
    "inception_v3",
    "bert_tiny",
    "gpt2_tiny",
    "llama_tiny",
)

Shape = tuple[int, ...]
Net = dict[str, Shape]


class Row(NamedTuple):
    """A tensor of a damaged file. place: the target key it truly belongs to, None where it belongs nowhere as it is.

    turned: whether it must be transposed to belong there.
    """

    key: str
    shape: Shape
    place: str | None
    turned: bool = False


File = list[Row]


@dataclass
class Damage:
    """One kind. make: from the intact names; accept: what the user would have to accept; goal: the target, if another.

    unsolvable: the right answer is a refusal, whatever is accepted.
    """

    name: str
    make: Callable[[Net, random.Random], File]
    accept: tuple[str, ...] = ()
    unsolvable: bool = False
    goal: Callable[[Net], Net] = dict
    answers: dict[str, str] = field(default_factory=dict)


# What a user who knows the truth of these files says when asked.
ANSWERS = {
    "index-shift": "shifted",
    "symmetric": "in-order",
    "same-order": "order",
    "rename": "as-placed",
    "rival": "as-placed",
    "transposed": "transposed",
}


def renamed(rename: Callable[[str], str]) -> Callable[[Net, random.Random], File]:
    return lambda own, _: [Row(rename(n), s, n) for n, s in own.items()]


def reshaped(change: Callable[[str, Shape], Shape], *, placed: bool = True) -> Callable[[Net, random.Random], File]:
    """placed False: what has another shape then belongs nowhere."""
    return lambda own, _: [Row(n, c, n if placed or c == s else None) for n, s in own.items() for c in [change(n, s)]]


def shifted(own: Net, _: random.Random) -> File:
    """Every first number of a key one up, as after a layer put in front of each Sequential."""
    return [Row(re.sub(r"\.(\d+)\.", lambda f: f".{int(f[1]) + 1}.", n, count=1), s, n) for n, s in own.items()]


def opaque(own: Net, rng: random.Random, *, shuffle: bool) -> File:
    names = list(own)
    if shuffle:
        rng.shuffle(names)
    return [Row(f"p{i:04d}", own[n], n) for i, n in enumerate(names)]


def random_modules(own: Net, rng: random.Random, *, leaves: bool = True, ordered: bool = True) -> File:
    made: dict[str, str] = {}
    for name in own:
        made.setdefault(name.rpartition(".")[0], f"m{rng.randrange(10**8):08d}")
        made.setdefault("leaf " + name, f"x{rng.randrange(10**8):08d}")
    rows = []
    for name, shape in own.items():
        module, _, leaf = name.rpartition(".")
        rows.append(Row(f"{made[module]}.{leaf if leaves else made['leaf ' + name]}", shape, name))
    return rows if ordered else sorted(rows)


def semantic(name: str) -> str:
    """Words for words, as another author would have it."""
    for old, new in (("layer", "stage"), ("features", "trunk"), ("conv", "cv"), ("classifier", "top"), ("attn", "sa")):
        name = re.sub(rf"(^|\.){old}(?=[.0-9])", rf"\1{new}", name)
    return name


def without(own: Net, rng: random.Random, prefix: str, share: float) -> File:
    return [Row(prefix + n, s, n) for n, s in own.items() if rng.random() >= share]


def twins(own: Net, _: random.Random) -> File:
    return [Row(f"model.{n}", s, None) for n, s in own.items()] + [Row(f"ema_model.{n}", s, n) for n, s in own.items()]


def detector(own: Net, _: random.Random) -> File:
    extra = [Row("rpn.head.conv.weight", (9, 9, 3, 3), None), Row("rpn.head.conv.bias", (9,), None)]
    return [Row(f"backbone.body.{n}", s, n) for n, s in own.items()] + extra


def other_head(own: Net, _: random.Random) -> File:
    # The head is what has 1000 rows; its tensors belong nowhere then.
    return [Row(n, (10, *s[1:]), None) if s[:1] == (1000,) else Row(n, s, n) for n, s in own.items()]


def no_counters(own: Net, _: random.Random) -> File:
    return [Row(n, s, n) for n, s in own.items() if not n.endswith("num_batches_tracked")]


def profiled(own: Net, _: random.Random) -> File:
    modules = dict.fromkeys(n.rpartition(".")[0] for n in own if "." in n)
    made = [Row(n, s, n) for n, s in own.items()]
    return made + [Row(f"{m}.{leaf}", (1,), None) for m in modules for leaf in ("total_ops", "total_params")]


def averaged(own: Net, _: random.Random) -> File:
    return [Row("n_averaged", (), None), *(Row(f"module.{n}", s, n) for n, s in own.items())]


def gamma_beta(name: str, own: Net) -> str:
    module, _, leaf = name.rpartition(".")
    is_norm = len(own.get(f"{module}.weight", (0, 0))) == 1 and f"{module}.bias" in own
    aliases = {"weight": "gamma", "bias": "beta"}
    return f"{module}.{aliases[leaf]}" if is_norm and leaf in aliases else name


def middle(name: str) -> str:
    first, _, rest = name.partition(".")
    return f"{first}.module.{rest}" if rest.count(".") else name


def transposed(own: Net, _: random.Random) -> File:
    """Every linear layer as (in, out); embeddings and tables are none."""
    rows = []
    for name, shape in own.items():
        linear = len(shape) == 2 and name.endswith("weight") and "embed" not in name and ".wte" not in name
        rows.append(Row(name, shape[::-1] if linear else shape, name, linear))
    return rows


def first_channels(own: Net, count: int) -> File:
    first = next((n for n, s in own.items() if len(s) == 4 and s[1] == 3), None)
    return [Row(n, (s[0], count, *s[2:]) if n == first else s, n) for n, s in own.items()]


def fused_split(own: Net, _: random.Random) -> File:
    rows: File = []
    for name, shape in own.items():
        if re.search(r"in_proj_(weight|bias)$", name):
            leaf = name.rpartition("_")[2]
            stem = name.removesuffix(f"in_proj_{leaf}")
            rows += [Row(f"{stem}{x}_proj.{leaf}", (shape[0] // 3, *shape[1:]), name) for x in "qkv"]
        else:
            rows.append(Row(name, shape, name))
    return rows


def chunked(name: str) -> str:
    """Blocks in lists of four: layers.5 as layers.1.1."""
    return re.sub(r"(layers?|h|blocks)\.(\d+)\.", lambda f: f"{f[1]}.{int(f[2]) // 4}.{int(f[2]) % 4}.", name, count=1)


def flattened(own: Net, _: random.Random) -> File:
    """The first two numbers of features.1.0 as one running number."""
    numbers: dict[str, int] = {}
    rows = []
    for name, shape in own.items():
        found = re.match(r"([a-z_]+)\.(\d+\.\d+)\.(.*)", name)
        if found is None:
            rows.append(Row(name, shape, name))
        else:
            number = numbers.setdefault(found[1] + found[2], len(numbers))
            rows.append(Row(f"{found[1]}.{number}.{found[3]}", shape, name))
    return rows


def normed(own: Net, old: bool) -> Net:
    """Every convolution with weight norm, under its old or new names."""
    g, v = (
        ("weight_g", "weight_v") if old else ("parametrizations.weight.original0", "parametrizations.weight.original1")
    )
    made: Net = {}
    for name, shape in own.items():
        module, _, leaf = name.rpartition(".")
        if leaf == "weight" and len(shape) == 4:
            made |= {f"{module}.{g}": (shape[0], 1, 1, 1), f"{module}.{v}": shape}
        else:
            made[name] = shape
    return made


def old_norms(own: Net, _: random.Random) -> File:
    return [Row(old, s, new) for (old, s), new in zip(normed(own, True).items(), normed(own, False), strict=True)]


def grid(name: str, shape: Shape) -> Shape:
    return (1, 577, shape[2]) if name.endswith("pos_embedding") else shape


def longer(name: str, shape: Shape) -> Shape:
    return (1, shape[1] + 1, shape[2]) if name.endswith("pos_embedding") else shape


DAMAGES = (
    Damage("as it is", renamed(lambda n: n)),
    Damage("module.", renamed(lambda n: f"module.{n}")),
    Damage("module.module.", renamed(lambda n: f"module.module.{n}")),
    Damage("_orig_mod.module.", renamed(lambda n: f"_orig_mod.module.{n}")),
    Damage("module._orig_mod.", renamed(lambda n: f"module._orig_mod.{n}")),
    Damage("model.", renamed(lambda n: f"model.{n}")),
    Damage("net_G.enc.", renamed(lambda n: f"net_G.enc.{n}")),
    Damage("mid-key module.", renamed(middle)),
    Damage("n_averaged + module.", averaged),
    Damage("total_ops, total_params", profiled),
    Damage("no num_batches_tracked", no_counters),
    Damage("counters as [1]", reshaped(lambda n, s: (1,) if s == () else s)),
    Damage("gamma, beta", lambda own, _: [Row(gamma_beta(n, own), s, n) for n, s in own.items()]),
    Damage("norm.1", renamed(lambda n: re.sub(r"\.(norm|conv)([12])\.", r".\1.\2.", n))),
    Damage("numbers + 1", shifted),
    Damage("module. + numbers + 1", lambda o, r: [Row(f"module.{k}", s, n) for k, s, n, _ in shifted(o, r)]),
    Damage("module. - 10 %", lambda o, r: without(o, r, "module.", 0.1)),
    Damage("net. - 50 %", lambda o, r: without(o, r, "net.", 0.5)),
    Damage("model. + ema_model.", twins, answers={"twins": "ema_model"}),
    Damage("backbone.body. + heads", detector, accept=("extra-tensors",)),
    Damage("10 classes", other_head, accept=("head-mismatch",)),
    Damage("1 input channel", lambda o, _: first_channels(o, 1), accept=("first-convolution",)),
    Damage("4 input channels", lambda o, _: first_channels(o, 4), accept=("first-convolution",)),
    Damage("weight_norm, old names", old_norms, goal=lambda own: normed(own, False)),
    Damage("semantic renames", renamed(semantic), accept=("same-order",)),
    Damage("random module names", random_modules, accept=("same-order",)),
    Damage("random names, leaves too", lambda o, r: random_modules(o, r, leaves=False), accept=("same-order",)),
    Damage("opaque, in order", lambda o, r: opaque(o, r, shuffle=False), accept=("same-order",)),
    Damage("dots removed", renamed(lambda n: f"model_ema.{n.replace('.', '')}"), accept=("same-order",)),
    Damage("first 4 letters cut off", renamed(lambda n: n[4:]), accept=("same-order",)),
    Damage("blocks in lists of 4", renamed(chunked), accept=("same-order",)),
    Damage("Sequential flattened", flattened, accept=("same-order",)),
    Damage("Linear transposed", transposed),
    Damage("1x1 convolution as Linear", reshaped(lambda n, s: s[:2] if len(s) == 4 and s[2:] == (1, 1) else s)),
    Damage("position grid of 384", reshaped(grid), accept=("position-grid",)),
    Damage("one token more", reshaped(longer, placed=False), accept=("position-grid",), unsolvable=True),
    Damage("q, k, v apart", fused_split, accept=("fused-attention",)),
    Damage("half of each matrix", reshaped(lambda n, s: (s[0] // 2, *s[1:]) if len(s) > 1 else s), unsolvable=True),
    Damage("ZeRO-3 placeholders", reshaped(lambda n, s: (0,)), unsolvable=True),
    Damage("random names, sorted", lambda o, r: random_modules(o, r, ordered=False), ("same-order",), unsolvable=True),
    Damage("opaque, shuffled", lambda o, r: opaque(o, r, shuffle=True), ("same-order",), unsolvable=True),
)

# A file of one architecture against its sibling: nothing may come out whole.
SIBLINGS = (("resnet34", "resnet50"), ("resnet34", "resnet18"), ("vgg13", "vgg11"), ("densenet169", "densenet121"))


def shapes(name: str) -> Net:
    if name in TEMPLATES:
        return TEMPLATES[name]()
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    # regnets compute their widths with tensors, which meta has not.
    with torch.device("cpu" if "regnet" in name else "meta"):
        model = getattr(torchvision.models, name)(weights=None, **options)
    return {n: tuple(t.shape) for n, t in model.state_dict().items()}


def layer(name: str, *weight: int, bias: bool = True) -> Net:
    return {f"{name}.weight": weight} | ({f"{name}.bias": weight[:1]} if bias else {})


def bert_tiny(depth: int = 6, width: int = 64) -> Net:
    """Names as Hugging Face's BertModel has them."""
    made = layer("embeddings.word_embeddings", 1000, width, bias=False)
    made |= layer("embeddings.position_embeddings", 128, width, bias=False)
    made |= layer("embeddings.token_type_embeddings", 2, width, bias=False) | layer("embeddings.LayerNorm", width)
    for i in range(depth):
        at = f"encoder.layer.{i}."
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            made |= layer(f"{at}attention.{part}", width, width)
        made |= layer(f"{at}attention.output.LayerNorm", width) | layer(f"{at}intermediate.dense", 4 * width, width)
        made |= layer(f"{at}output.dense", width, 4 * width) | layer(f"{at}output.LayerNorm", width)
    return made | layer("pooler.dense", width, width)


def gpt2_tiny(depth: int = 6, width: int = 64) -> Net:
    """Names as nanoGPT has them, with linear layers."""
    made = layer("transformer.wte", 1000, width, bias=False) | layer("transformer.wpe", 128, width, bias=False)
    for i in range(depth):
        at = f"transformer.h.{i}."
        made |= layer(f"{at}ln_1", width) | layer(f"{at}attn.c_attn", 3 * width, width)
        made |= layer(f"{at}attn.c_proj", width, width) | layer(f"{at}ln_2", width)
        made |= layer(f"{at}mlp.c_fc", 4 * width, width) | layer(f"{at}mlp.c_proj", width, 4 * width)
    return made | layer("transformer.ln_f", width) | layer("lm_head", 1000, width, bias=False)


def llama_tiny(depth: int = 6, width: int = 64) -> Net:
    """Names as Hugging Face's LlamaForCausalLM has them."""
    made = layer("model.embed_tokens", 1000, width, bias=False)
    for i in range(depth):
        at = f"model.layers.{i}."
        for part, rows in (("q", width), ("k", width // 4), ("v", width // 4), ("o", width)):
            made |= layer(f"{at}self_attn.{part}_proj", rows, width, bias=False)
        for part, size in (("gate", (3 * width, width)), ("up", (3 * width, width)), ("down", (width, 3 * width))):
            made |= layer(f"{at}mlp.{part}_proj", *size, bias=False)
        made |= layer(f"{at}input_layernorm", width, bias=False)
        made |= layer(f"{at}post_attention_layernorm", width, bias=False)
    return made | layer("model.norm", width, bias=False) | layer("lm_head", 1000, width, bias=False)


TEMPLATES: dict[str, Callable[[], Net]] = {"bert_tiny": bert_tiny, "gpt2_tiny": gpt2_tiny, "llama_tiny": llama_tiny}


def as_checkpoint(file: File) -> Checkpoint:
    tensors = tuple(
        TensorInfo(name=n, path=(n,), shape=s, dtype="float32", nbytes=0, storage_id=None) for n, s, _, _ in file
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
    truth = {row.key: row for row in file}
    right = wrong = 0
    for step in report.plan.steps if report.plan else ():
        if step.source is not None and step.target is not None:
            rows = [truth[source] for source in step.sources]
            good = all(r.place == step.target and r.turned == (step.kind is StepKind.PERMUTE) for r in rows)
            # Query, key and value go below each other in this order.
            good = good and (len(rows) == 1 or [r.key.rpartition("_proj.")[0][-1] for r in rows] == list("qkv"))
            right, wrong = right + good * len(rows), wrong + (not good) * len(rows)
    return right, wrong


# What others do, written from their descriptions: target key -> file key, None when they refuse.
Peer = Callable[[File, Net], dict[str, str] | None]


def plain(file: File, goal: Net) -> dict[str, str]:
    """load_state_dict, as far as it comes."""
    return {row.key: row.key for row in file if goal.get(row.key) == row.shape}


def consumed(file: File, goal: Net) -> dict[str, str]:
    """torch's consume_prefix_in_state_dict_if_present("module.")."""
    keys = {row.key.removeprefix("module."): row for row in file}
    return {name: row.key for name, row in keys.items() if goal.get(name) == row.shape}


def zipped(file: File, goal: Net) -> dict[str, str] | None:
    """In order, if counts and numbers of elements agree, reshaped to fit: what timm's remap does."""
    if len(file) != len(goal):
        return None
    pairs = list(zip(goal, file, strict=True))
    if any(math.prod(goal[name]) != math.prod(row.shape) for name, row in pairs):
        return None
    return {name: row.key for name, row in pairs}


def longest_suffix(file: File, goal: Net) -> dict[str, str] | None:
    """Each place takes the file's longest key that it ends with; a key wanted twice is an error (detectron2)."""
    rows = {row.key: row for row in file}
    found: dict[str, str] = {}
    for name in goal:
        parts = name.split(".")
        ends = (".".join(parts[i:]) for i in range(len(parts)))
        key = next((end for end in ends if end in rows), None)
        if key is not None and rows[key].shape == goal[name]:
            if key in found.values():
                return None
            found[name] = key
    return found


PEERS: dict[str, Peer] = {
    "load_state_dict": plain,
    "consume_prefix": consumed,
    "zip in order": zipped,
    "longest suffix": longest_suffix,
}


@dataclass
class Score:
    """Over all cases. placeable, right, wrong: tensors; cases, whole, silent: cases."""

    cases: int = 0
    whole: int = 0
    silent: int = 0
    right: int = 0
    wrong: int = 0
    placeable: int = 0

    def add(self, right: int, wrong: int, whole: bool, file: File, *, solvable: bool) -> None:
        self.cases += 1
        self.whole += whole
        self.silent += whole and (wrong > 0 or not solvable)
        if solvable:
            self.right += right
            self.wrong += wrong
            self.placeable += sum(1 for row in file if row.place is not None)

    @property
    def says(self) -> str:
        share = [100 * n / self.placeable for n in (self.right, self.wrong)]
        return f"right {share[0]:5.1f} %, wrong {share[1]:5.2f} %, whole {self.whole:4d}, silent {self.silent:3d}"


def judge_peer(peer: Peer, file: File, goal: Net) -> tuple[int, int, bool]:
    """(right, wrong, whether it would load strictly)."""
    found = peer(file, goal)
    if found is None:
        return 0, 0, False
    rows = {row.key: row for row in file}
    right = sum(1 for name, key in found.items() if rows[key].place == name and not rows[key].turned)
    return right, len(found) - right, set(found) == set(goal) and len(found) == len(file)


def ask(damage: Damage, checkpoint: Checkpoint, target: Target) -> tuple[KeyReport, bool]:
    """(the last answer, whether anything was asked): questions are answered until none is open."""
    report = diagnose(checkpoint, target)
    asked = False
    answers: dict[str, str] = {}
    for _ in range(4):
        plan = report.plan
        if plan is None or not (plan.ambiguities or plan.needs_accept):
            break
        asked = True
        for question in plan.ambiguities:
            kind = question.id.partition(":")[0]
            known = damage.answers.get(kind) or ANSWERS.get(kind)
            if known in dict(question.options):
                answers[question.id] = str(known)
        report = diagnose(checkpoint, target, accept=damage.accept, choose=answers)
    return report, asked


def main() -> int:
    torch.set_num_threads(1)
    sizes = {name: shapes(name) for name in MODELS}
    ours, peers = Score(), {name: Score() for name in PEERS}
    seconds: list[float] = []
    rules: list[int] = []
    print(f"{len(MODELS)} architectures, one seed each; right and wrong in % of placeable tensors\n")
    print(f"{'damage':26} {'right':>6} {'wrong':>6} {'whole':>7} {'asked':>6} {'silent':>7} {'rules':>6}")
    for damage in DAMAGES:
        score, asked, used = Score(), 0, []
        for name, own in sizes.items():
            file, goal = damage.make(own, random.Random(f"{name}{damage.name}")), damage.goal(own)
            same = [(row.key, row.shape) for row in file] == list(goal.items())
            if (same and damage.name != "as it is") or len({row.key for row in file}) < len(file):
                continue  # it does nothing to this architecture, or lets two names fall together
            checkpoint, target = as_checkpoint(file), as_target(goal)
            started = time.perf_counter()
            report = diagnose(checkpoint, target)
            seconds.append(time.perf_counter() - started)
            ours.silent += bool(report.plan and report.plan.complete and judge(report, file)[1])
            report, waited = ask(damage, checkpoint, target)
            asked += waited
            complete = bool(report.plan and report.plan.complete)
            for total in (score, ours):
                total.add(*judge(report, file), complete, file, solvable=not damage.unsolvable)
            if complete and report.plan is not None:
                used.append(len(report.plan.rules))
            for peer, function in PEERS.items():
                right, wrong, whole = judge_peer(function, file, goal)
                peers[peer].add(right, wrong, whole, file, solvable=not damage.unsolvable)
        rules += used
        median = f"{statistics.median(used):.0f}" if used else "-"
        share = [
            f"{100 * n / score.placeable:6.1f}" if score.placeable else "     -" for n in (score.right, score.wrong)
        ]
        print(
            f"{damage.name:26} {share[0]} {share[1]} {score.whole:3d}/{score.cases:<3d} {asked:6d} {score.silent:7d} "
            f"{median:>6}"
        )
    for file_name, target_name in SIBLINGS:
        own = shapes(file_name)
        file = [Row(n, s, None) for n, s in own.items()]
        report = diagnose(as_checkpoint(file), as_target(shapes(target_name)), accept=("same-order",))
        whole = bool(report.plan and report.plan.complete)
        ours.silent += whole
        ours.cases += 1
        print(f"{file_name + ' as ' + target_name:26} {'whole' if whole else 'refused'}: {report.says[:90]}")
    print(f"\n{ours.cases} cases. {'This engine':16} {ours.says}")
    for peer, total in peers.items():
        print(f"{'':{len(str(ours.cases)) + 7}} {peer:16} {total.says}")
    middle_ms, most_ms = 1000 * statistics.median(seconds), 1000 * max(seconds)
    print(
        f"Rules in the median {statistics.median(rules):.0f}; {middle_ms:.1f} ms in the median, {most_ms:.0f} at most."
    )
    return 1 if ours.silent else 0


if __name__ == "__main__":
    raise SystemExit(main())
