"""Are relatives of checkpoints recognised, and are strangers left alone?

    python benchmarks/bench_relatives.py [--networks mlp,cnn,transformer,recurrent] [--seeds 3] [--unrelated 2000]

Networks of four kinds are trained here on synthetic data; each relative is made by plain torch, from the definition and
not by the code that looks for it. Counted are verdicts by what the pair truly is. Thresholds were set with "mlp" and
"cnn" alone.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from inspector.compare.diff import compare_checkpoints
from inspector.compare.report import Diff
from inspector.readers import open_checkpoint

State = dict[str, Tensor]


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.f1, self.f2, self.f3 = nn.Linear(64, 128), nn.Linear(128, 96), nn.Linear(96, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.f3(functional.relu(self.f2(functional.relu(self.f1(x.flatten(1))))))

    @staticmethod
    def permute(state: State, g: torch.Generator) -> State:
        p, q = torch.randperm(128, generator=g), torch.randperm(96, generator=g)
        state["f1.weight"], state["f1.bias"] = state["f1.weight"][p], state["f1.bias"][p]
        state["f2.weight"], state["f2.bias"] = state["f2.weight"][q][:, p], state["f2.bias"][q]
        state["f3.weight"] = state["f3.weight"][:, q]
        return state


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24)
        self.dw, self.c2, self.b2 = nn.Conv2d(24, 24, 3, padding=1, groups=24), nn.Conv2d(24, 48, 3), nn.BatchNorm2d(48)
        self.f1, self.f2 = nn.Linear(48 * 9, 64), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.b1(self.c1(x)))
        x = functional.max_pool2d(functional.relu(self.b2(self.c2(self.dw(x)))), 2)
        return self.f2(functional.relu(self.f1(x.flatten(1))))

    @staticmethod
    def permute(state: State, g: torch.Generator) -> State:
        p, q, r = (torch.randperm(n, generator=g) for n in (24, 48, 64))
        for name in ("c1.weight", "c1.bias", "dw.weight", "dw.bias"):
            state[name] = state[name][p]
        for norm, order in (("b1", p), ("b2", q)):
            for part in ("weight", "bias", "running_mean", "running_var"):
                state[f"{norm}.{part}"] = state[f"{norm}.{part}"][order]
        state["c2.weight"], state["c2.bias"] = state["c2.weight"][q][:, p], state["c2.bias"][q]
        columns = (q[:, None] * 9 + torch.arange(9)).flatten()
        state["f1.weight"], state["f1.bias"] = state["f1.weight"][r][:, columns], state["f1.bias"][r]
        state["f2.weight"] = state["f2.weight"][:, r]
        return state


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(50, 64), nn.Parameter(torch.randn(16, 64) * 0.02)
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        ids = ((x.flatten(1)[:, :16] * 5).long() % 50).abs()
        return self.head(self.body(self.token(ids) + self.place).mean(1))

    @staticmethod
    def permute(state: State, g: torch.Generator) -> State:
        for n in range(2):
            p = torch.randperm(128, generator=g)
            at = f"body.layers.{n}"
            state[f"{at}.linear1.weight"] = state[f"{at}.linear1.weight"][p]
            state[f"{at}.linear1.bias"] = state[f"{at}.linear1.bias"][p]
            state[f"{at}.linear2.weight"] = state[f"{at}.linear2.weight"][:, p]
        return state


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(8, 48, num_layers=2, batch_first=True), nn.Linear(48, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x.flatten(1).reshape(-1, 8, 8))[0][:, -1])

    @staticmethod
    def permute(state: State, g: torch.Generator) -> State:
        before = None
        for n in range(2):
            p = torch.randperm(48, generator=g)
            gates = torch.cat([p + 48 * k for k in range(4)])
            for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                state[f"rnn.{part}_l{n}"] = state[f"rnn.{part}_l{n}"][gates]
            state[f"rnn.weight_hh_l{n}"] = state[f"rnn.weight_hh_l{n}"][:, p]
            if before is not None:
                state[f"rnn.weight_ih_l{n}"] = state[f"rnn.weight_ih_l{n}"][:, before]
            before = p
        state["head.weight"] = state["head.weight"][:, before]
        return state


NETWORKS: dict[str, type[nn.Module]] = {"mlp": Mlp, "cnn": Cnn, "transformer": Transformer, "recurrent": Recurrent}


def data(seed: int) -> tuple[Tensor, Tensor]:
    """Noisy copies of ten pictures of 8 x 8: the same ten for all, so that unrelated networks learn one task."""
    fixed = torch.randn(10, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (512,), generator=g)
    return fixed[labels] + 0.7 * torch.randn(512, 1, 8, 8, generator=g), labels


def train(model: nn.Module, seed: int, steps: int, lr: float = 1e-3, mask: State | None = None) -> nn.Module:
    x, y = data(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    g = torch.Generator().manual_seed(seed + 1)
    for _ in range(steps):
        batch = torch.randint(0, len(x), (64,), generator=g)
        loss = functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for name, keep in (mask or {}).items():
            with torch.no_grad():
                model.get_parameter(name).mul_(keep)
    return model


def matrices(state: State) -> list[str]:
    return [name for name, t in state.items() if t.dim() >= 2 and min(t.shape[0], t[0].numel()) >= 8]


def relatives_of(model: nn.Module, kind: type[nn.Module], seed: int) -> dict[str, tuple[State, tuple[str, ...]]]:
    """What is made of it -> (its state, the verdicts of which one has to be there)."""
    base = {name: t.clone() for name, t in model.state_dict().items()}
    g = torch.Generator().manual_seed(seed)
    made: dict[str, tuple[State, tuple[str, ...]]] = {}

    def fresh() -> State:
        return {name: t.clone() for name, t in base.items()}

    made["same"] = (fresh(), ("same",))
    for name, dtype in (("float16", torch.float16), ("bfloat16", torch.bfloat16)):
        made[f"cast to {name}"] = (
            {k: t.to(dtype) if t.is_floating_point() else t for k, t in fresh().items()},
            ("after-cast",),
        )

    def pruned(share: float, per: str) -> State:
        state = fresh()
        cut = torch.quantile(torch.cat([base[n].abs().flatten() for n in matrices(base)]), share)
        for n in matrices(state):
            if per == "rows":
                rows = torch.randperm(len(state[n]), generator=g)[: max(1, int(share * len(state[n])))]
                state[n][rows] = 0
                continue
            limit = cut if per == "all" else torch.quantile(state[n].abs().flatten(), share)
            chance = torch.rand(state[n].shape, generator=g) < share
            state[n][chance if per == "random" else state[n].abs() <= limit] = 0
        return state

    for share, per in ((0.5, "tensor"), (0.5, "all"), (0.8, "tensor"), (0.3, "random"), (0.3, "rows")):
        made[f"pruned {share:.0%} by {per}"] = (pruned(share, per), ("pruned",))
    retrained = copy.deepcopy(model)
    retrained.load_state_dict(pruned(0.5, "tensor"))
    keep = {
        n: (retrained.state_dict()[n] != 0).float() for n in matrices(base) if n in dict(retrained.named_parameters())
    }
    made["pruned and trained on"] = (train(retrained, seed + 50, 60, mask=keep).state_dict(), ("pruned",))

    def quantised(bits: int, group: int, dtype: torch.dtype = torch.float32, affine: bool = False) -> State | None:
        state = fresh()
        done = False
        for n in matrices(state):
            flat = state[n].reshape(len(state[n]), -1)
            if group == 0:
                flat = flat.reshape(1, -1)
            elif group > 0:
                if flat.shape[1] % group:
                    continue
                flat = flat.reshape(-1, group)
            top = 2 ** (bits - 1) - 1
            if affine:
                low = flat.amin(1, keepdim=True)
                step = (flat.amax(1, keepdim=True) - low) / (2**bits - 1)
                flat = torch.round((flat - low) / step) * step + low
            else:
                step = flat.abs().amax(1, keepdim=True) / top
                flat = torch.clamp(torch.round(flat / step), -top - 1, top) * step
            state[n] = flat.reshape(state[n].shape).to(dtype)
            done = True
        return state if done else None

    for bits, group, dtype, affine in (
        (8, 0, torch.float32, False),
        (8, -1, torch.float32, False),
        (4, -1, torch.float32, False),
        (4, 32, torch.float32, True),
        (8, 32, torch.float32, False),
        (8, -1, torch.float16, False),
        (4, 32, torch.bfloat16, False),
        (8, -1, torch.float32, True),
    ):
        state = quantised(bits, group, dtype, affine)
        if state is not None:
            where = {0: "tensor", -1: "row"}.get(group, f"group of {group}")
            name = f"quantised int{bits} per {where} {str(dtype)[6:]}{' affine' if affine else ''}"
            made[name] = (state, ("quantised",))

    def merged(rank: int, dtype: torch.dtype, share: float = 1.0) -> State:
        state = fresh()
        names = [n for n in matrices(state) if min(len(state[n]), state[n][0].numel()) >= 4 * rank]
        for n in names[: max(1, int(share * len(names)))]:
            rows, columns = len(state[n]), state[n][0].numel()
            delta = torch.randn(rows, rank, generator=g) @ torch.randn(rank, columns, generator=g)
            delta *= 0.3 * base[n].norm() / delta.norm()
            state[n] = (state[n] + delta.reshape(state[n].shape)).to(dtype)
        return state

    for rank, dtype in ((2, torch.float32), (4, torch.float32), (4, torch.float16), (4, torch.bfloat16)):
        made[f"LoRA of rank {rank} merged {str(dtype)[6:]}"] = (merged(rank, dtype), ("low-rank",))
    made["LoRA of rank 2 merged in half"] = (merged(2, torch.float32, 0.5), ("low-rank",))
    made["permuted"] = (kind.permute(fresh(), g), ("permuted",))  # type: ignore[attr-defined]
    tuned = copy.deepcopy(model)
    tuned.load_state_dict(kind.permute(fresh(), g))  # type: ignore[attr-defined]
    made["permuted and trained on"] = (train(tuned, seed + 70, 60, 3e-4).state_dict(), ("permuted",))
    further = train(copy.deepcopy(model), seed + 90, 80, 3e-4)
    made["trained on"] = (further.state_dict(), ("same-direction",))
    return made


def judged(a: Path, b: Path) -> Diff:
    return compare_checkpoints(open_checkpoint(a), open_checkpoint(b))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="mlp,cnn,transformer,recurrent")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--unrelated", type=int, default=2000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    wrong: list[str] = []
    seconds: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:

        def save(state: State, name: str) -> Path:
            path = Path(folder) / f"{name.replace(' ', '_').replace('%', '')}.pth"
            torch.save({k: t.clone() for k, t in state.items()}, path)
            return path

        for name in options.networks.split(","):
            kind = NETWORKS[name]
            for seed in range(options.seeds):
                torch.manual_seed(seed)
                model = train(kind(), seed, 250)
                a = save(model.state_dict(), f"{name}{seed}")
                for made, (state, expected) in relatives_of(model, kind, seed).items():
                    began = time.perf_counter()
                    found = judged(a, save(state, "b"))
                    seconds[name].append(time.perf_counter() - began)
                    ids = {verdict.id for verdict in found.verdicts}
                    asked[made] += 1
                    right[made] += bool(ids & set(expected))
                    proofs = {v.id for v in found.verdicts if v.proved} - set(expected) - {"only-some"}
                    if proofs or not ids & set(expected):
                        wrong.append(f"{name} {seed}, {made}: {sorted(ids)}")
        for made, count in asked.items():
            print(f"{made:45} {right[made]:4} of {count}")
        for line in wrong:
            print("  not as made:", line)
        print("seconds a pair, median:", {n: round(sorted(s)[len(s) // 2], 3) for n, s in seconds.items()})
        claims, pairs = unrelated(options, save)
        print(f"unrelated pairs: {pairs:,}; with a claim of relation: {sum(claims.values()):,} {dict(claims)}")
    return 0 if not claims else 1


def unrelated(options: argparse.Namespace, save: Callable[[State, str], Path]) -> tuple[Counter[str], int]:
    """Pairs of one kind from other seeds: trained, untrained, one of them pruned, quantised or cast."""
    claims: Counter[str] = Counter()
    names = options.networks.split(",")
    each = options.unrelated // len(names)
    count = 2
    while count * (count - 1) // 2 < each:
        count += 1
    pairs = 0
    for name in names:
        files = []
        for n in range(count):
            torch.manual_seed(1000 + n)
            model = train(NETWORKS[name](), 1000 + n, (0, 40, 120)[n % 3], (1e-3, 3e-3)[n % 2])
            state = model.state_dict()
            for key in matrices(state):
                if n % 5 == 1:
                    state[key][state[key].abs() < state[key].abs().median()] = 0
                if n % 5 == 2:
                    step = state[key].abs().max() / 127
                    state[key] = torch.round(state[key] / step) * step
                if n % 5 == 3:
                    state[key] = state[key].half()
            files.append(save(state, f"{name}_u{n}"))
        for a, b in itertools.islice(itertools.combinations(files, 2), each):
            pairs += 1
            for verdict in judged(a, b).verdicts:
                if verdict.id != "unrelated":
                    claims[f"{name}: {verdict.id}"] += 1
    return claims, pairs


if __name__ == "__main__":
    raise SystemExit(main())
