"""What each command takes for files of 20,000 tensors, and whether it gives the right answer.

    python benchmarks/bench_twenty_thousand.py [--only mixture] [--commands open,check] [--against OTHER/CHECKOUT]
    python benchmarks/bench_twenty_thousand.py --steps [--only mixture] [--against OTHER/CHECKOUT]

Four files of small tensors, so that names and the work for each tensor cost and bytes do not: a mixture of experts
under Hugging Face's names, an unknown network of nested convolutions, a transformer of 2,222 layers, and the same under
`module.` with an optimizer beside it. CPU seconds are those of a process of its own, its start included, and hold on a
machine with other work on it within a third; with --against each command runs in both checkouts in turn. Answers are
asserted: counts, names and kinds that the files were made with. With --steps it is what a page waits for, each by
itself in a process that has opened and examined a file before: CPU seconds without a start and without JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LAYERS, EXPERTS, DEEP, CHANGED = 64, 102, 2_222, 300
FILES = {"mixture.safetensors": 20_035, "nested.pth": 20_002, "deep.safetensors": 20_001, "wrapped.pth": 20_001}
LABELS = {
    "mixture.safetensors": "transformers/mixtral",
    "deep.safetensors": "transformers/llama",
    "wrapped.pth": "transformers/llama",
}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the name of the files to measure")
    parser.add_argument("--commands", default="", help="names with commas")
    parser.add_argument("--against", type=Path, help="another checkout, with an environment in .venv or for this one's")
    parser.add_argument("--steps", action="store_true", help="what a page waits for, in place of commands")
    given = parser.parse_args()
    wanted = tuple(filter(None, given.commands.split(",")))
    checkouts = [ROOT, *([given.against.resolve()] if given.against else [])]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make_files(folder)
        if given.steps:
            show_steps(folder, given.only, checkouts)
            return
        print(f"| file | command | {' | '.join(f'{one.name}, CPU s | MB' for one in checkouts)} |")
        for name, command, words, right in cases(folder):
            if given.only not in name or (wanted and command not in wanted):
                continue
            row = []
            for checkout in checkouts:
                seconds, megabytes, answer = run(checkout, words)
                right(answer)
                row += [f"{seconds:.1f}", f"{megabytes:.0f}"]
            print(f"| {name} | {command} | {' | '.join(row)} |", flush=True)


def show_steps(folder: Path, only: str, checkouts: list[Path]) -> None:
    """A row per step: seconds in each checkout."""
    print(f"| file | step | {' | '.join(f'{one.name}, CPU s' for one in checkouts)} |")
    for name, tensors in FILES.items():
        if only not in name:
            continue
        found = []
        for checkout in checkouts:
            done = subprocess.run(
                [python_of(checkout), "-c", _STEPS, str(folder / name), str(tensors)],
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(checkout)},
                # With -c Python looks here first.
                cwd=checkout,
                stdout=subprocess.PIPE,
                check=True,
            )
            found.append(json.loads(done.stdout.splitlines()[-1]))
        for step in found[0]:
            print(f"| {name} | {step} | {' | '.join(f'{one[step]:.2f}' for one in found)} |", flush=True)


def make_files(folder: Path) -> None:
    """Seeded."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    torch.set_num_threads(1)
    first = _mixture(torch.randn)
    save_file(first, folder / "mixture.safetensors")
    names = sorted(first)[:: len(first) // CHANGED][:CHANGED]
    save_file({**first, **{name: first[name] * 1.01 for name in names}}, folder / "mixture_later.safetensors")
    torch.save(_nested(torch), folder / "nested.pth")
    deep = _deep(torch)
    save_file(deep, folder / "deep.safetensors")
    wrapped = {f"module.{name}": tensor for name, tensor in deep.items()}
    moved = {i: {"momentum_buffer": torch.randn(tensor.shape)} for i, tensor in enumerate(wrapped.values())}
    group = {"lr": 0.1, "momentum": 0.9, "dampening": 0, "weight_decay": 0.0, "nesterov": False}
    optimizer = {"state": moved, "param_groups": [{**group, "params": list(moved)}]}
    torch.save({"state_dict": wrapped, "optimizer": optimizer, "epoch": 3}, folder / "wrapped.pth")


def _mixture(draw: Callable[..., Any]) -> dict[str, Any]:
    """64 layers of 102 experts under Mixtral's names: 20,035 tensors."""
    made = {"model.embed_tokens.weight": draw(64, 16), "model.norm.weight": draw(16), "lm_head.weight": draw(64, 16)}
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        made |= {f"{at}.self_attn.{name}_proj.weight": draw(16, 16) for name in "qkvo"}
        made |= {f"{at}.{name}_layernorm.weight": 1 + draw(16) / 100 for name in ("input", "post_attention")}
        made[f"{at}.block_sparse_moe.gate.weight"] = draw(EXPERTS, 16)
        for expert in range(EXPERTS):
            inside = f"{at}.block_sparse_moe.experts.{expert}"
            made |= {f"{inside}.{name}.weight": draw(24, 16) for name in ("w1", "w3")}
            made[f"{inside}.w2.weight"] = draw(16, 24)
    return made


def _nested(torch: Any) -> dict[str, Any]:
    """8 stages of 50 units of 5 branches, of nobody's network: 20,002 tensors."""
    made: dict[str, Any] = {}
    for stage in range(8):
        width = 4 + stage
        for unit in range(50):
            for branch in range(5):
                at = f"trunk.stage{stage}.unit{unit}.branch_{branch}"
                made[f"{at}.reduce.conv.weight"] = torch.randn(6, width + branch % 2, 1, 1)
                made |= {f"{at}.reduce.bn.{name}": torch.rand(6) + 0.5 for name in ("weight", "bias")}
                made |= {f"{at}.reduce.bn.running_{name}": torch.rand(6) + 0.5 for name in ("mean", "var")}
                made[f"{at}.reduce.bn.num_batches_tracked"] = torch.tensor(100)
                made[f"{at}.mix.conv.weight"] = torch.randn(width, 6, 3, 3)
                made[f"{at}.mix.conv.bias"] = torch.randn(width)
                made |= {f"{at}.gate.fc.weight": torch.randn(width, width), f"{at}.gate.fc.bias": torch.randn(width)}
    return {**made, "head.weight": torch.randn(10, 11), "head.bias": torch.randn(10)}


def _deep(torch: Any) -> dict[str, Any]:
    """2,222 layers of nine tensors under Llama's names: 20,001 tensors."""
    made = {"model.embed_tokens.weight": torch.randn(16, 4)}
    for layer in range(DEEP):
        at = f"model.layers.{layer}"
        made |= {f"{at}.self_attn.{name}_proj.weight": torch.randn(4, 4) for name in "qkvo"}
        made |= {f"{at}.{name}_layernorm.weight": torch.ones(4) for name in ("input", "post_attention")}
        made |= {f"{at}.mlp.{name}_proj.weight": torch.randn(8, 4) for name in ("gate", "up")}
        made[f"{at}.mlp.down_proj.weight"] = torch.randn(4, 8)
    return {**made, "model.norm.weight": torch.ones(4), "lm_head.weight": torch.randn(16, 4)}


Answer = dict[str, Any]
Case = tuple[str, str, tuple[str, ...], Callable[[Answer], None]]


def cases(folder: Path) -> Iterator[Case]:
    """(file, command, its words, what asserts the answer)."""
    for name, tensors in FILES.items():
        label = LABELS.get(name, "")
        file = str(folder / name)

        def opened(answer: Answer, tensors: int = tensors) -> None:
            assert len(answer["state_dicts"][0]["tensors"]) == tensors
            assert [one["topic"] for one in answer["overview"]["answers"]]

        def identified(answer: Answer, label: str = label) -> None:
            candidates = answer["candidates"]
            assert candidates[0]["spec"]["label"].startswith(label) if label else not candidates

        def checked(answer: Answer) -> None:
            assert len(answer["files"]) == 1

        def reported(answer: Answer, tensors: int = tensors) -> None:
            assert len(answer["tensors"]) == tensors and all(one["numbers"] for one in answer["tensors"])

        yield name, "open", ("open", file, "--json"), opened
        yield name, "identify", ("identify", file, "--json"), identified
        yield name, "check", ("check", file, "--json", "--no-config"), checked
        yield name, "report", ("report", file, "--json"), reported
        yield name, "stats", ("stats", file, "--json"), lambda answer: None
        if label:
            yield name, "diagnose", ("diagnose", file, "--json"), lambda answer, n=tensors: _placed(answer, n)
    pair = (str(folder / "mixture.safetensors"), str(folder / "mixture_later.safetensors"))
    yield "mixture.safetensors", "diff", ("diff", *pair, "--json"), _differs


def _placed(answer: Answer, tensors: int) -> None:
    plan = answer["plan"]
    assert plan["complete"] and len(plan["steps"]) == tensors


def _differs(answer: Answer) -> None:
    text = json.dumps(answer)
    assert "block_sparse_moe" in text
    changed = [one for one in answer["tensors"] if one.get("numbers")] if "tensors" in answer else []
    assert not changed or len(changed) == CHANGED


def python_of(checkout: Path) -> str:
    own = checkout / ".venv" / "bin" / "python"
    return str(own if own.exists() else sys.executable)


def run(checkout: Path, words: tuple[str, ...]) -> tuple[float, float, Answer]:
    """(CPU seconds, peak MB, what it printed). An exit of 1 says that something was found."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as printed:
        done = subprocess.run(
            [python_of(checkout), "-c", _CHILD, *words],
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(checkout)},
            # With -c Python looks here first.
            cwd=checkout,
            stdout=printed,
            stderr=subprocess.PIPE,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr[-2000:]
        printed.seek(0)
        answer: Answer = json.loads(printed.read())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, float(done.stderr.rsplit(b"peak ", 1)[1]) / 1e3, answer


_STEPS = """
import json, sys, tempfile
from pathlib import Path
from time import process_time
from inspector.architectures.recognise import recognise
from inspector.architectures.targets import target_of_candidate
from inspector.health.examine import judge
from inspector.keys.diagnose import diagnose
from inspector.params.count import count_parameters
from inspector.readers import open_checkpoint
from inspector.weights.measure import read_tensors

def steps(path):
    seconds, last = {}, process_time()
    def done(step):
        nonlocal last
        seconds[step], last = process_time() - last, process_time()
    checkpoint = open_checkpoint(path)
    state = checkpoint.weights
    done("open")
    recognition = recognise(checkpoint, state)
    done("what it is")
    parameters = count_parameters(checkpoint, state, recognition)
    done("sizes of modules")
    if recognition.best is not None:
        report = diagnose(checkpoint, target_of_candidate(recognition.best), state=state)
        assert report.plan.complete or len(state.tensors) < 1000
        done("keys")
    readings = read_tensors(checkpoint, checkpoint.tensors)
    done("numbers of all tensors")
    health = judge(checkpoint, state, readings)
    done("what they say")
    return len(state.tensors), len(health.weights.tensors), seconds

import torch
with tempfile.TemporaryDirectory() as folder:
    first = str(Path(folder) / "first.pth")
    names = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.up_proj")
    torch.save({f"model.layers.{i}.{name}.weight": torch.randn(20, 20) for i in range(4) for name in names}, first)
    steps(first)
tensors, measured, seconds = steps(sys.argv[1])
assert tensors == measured == int(sys.argv[2]), (tensors, measured)
print(json.dumps(seconds))
"""

_CHILD = """
import atexit, resource, sys
atexit.register(lambda: print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr))
from inspector.cli.main import main
sys.exit(main())
"""


if __name__ == "__main__":
    main()
