"""A plain installation, without torch, writes the very bytes that are written with it; what takes torch is refused."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import torch
from safetensors.torch import save_file

from benchmarks.keybench.architectures import architecture_of
from benchmarks.keybench.corruptions import CORRUPTIONS
from benchmarks.keybench.damage import Damaged
from benchmarks.keybench.engine import answered
from benchmarks.keybench.numbers import fingerprints
from benchmarks.keybench.run import is_case
from inspector.architectures.targets import parse_target
from inspector.exports.writers import WRITERS
from inspector.installed import install_line
from inspector.keys.diagnose import diagnose
from inspector.keys.operations import operation_of
from inspector.readers import open_checkpoint
from tests.exports.plain_run import do
from tests.exports.test_stream import odd_state

NETS = ("fused", "unet_tiny", "bert_tiny", "gpt2_tiny", "llama_tiny", "wav2vec2_tiny")
# Two blocks of a vision transformer with a norm that counts batches: none of the others has these.
FUSED = {
    f"blocks.{n}.{name}": shape
    for n in range(2)
    for name, shape in {
        "norm1.weight": (8,),
        "norm1.bias": (8,),
        "attn.qkv.weight": (24, 8),
        "attn.qkv.bias": (24,),
        "attn.proj.weight": (8, 8),
        "attn.proj.bias": (8,),
        "mlp.fc1.weight": (16, 8),
        "mlp.fc1.bias": (16,),
        "conv.weight": (16, 16, 1, 1),
        "bn.weight": (16,),
        "bn.bias": (16,),
        "bn.running_mean": (16,),
        "bn.running_var": (16,),
        "bn.num_batches_tracked": (),
    }.items()
}
# What the benchmark's damage must have made use of, or the comparison is about less than it says.
MOVES = {"keep", "reshape", "permute", "merge", "split", "tie", "fill-zero"}


def job(file: Path, out: Path, **more: object) -> dict[str, object]:
    given = {"target": "", "adapter": "", "accept": [], "choose": {}, "options": {}}
    return {"file": str(file), "out": str(out), **given, **more}


def without_torch(jobs: list[dict[str, object]], folder: Path) -> list[dict]:
    """What becomes of the jobs in a process that has no torch, written into a folder of its own."""
    (folder / "plain").mkdir(exist_ok=True)
    (folder / "jobs.json").write_text(
        json.dumps([{**each, "out": str(folder / "plain" / Path(str(each["out"])).name)} for each in jobs])
    )
    script = Path(__file__).with_name("plain_run.py")
    done = subprocess.run([sys.executable, str(script), str(folder / "jobs.json")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@lru_cache
def _net(name: str) -> dict[str, torch.Tensor]:
    if name == "fused":
        chance = torch.Generator().manual_seed(0)
        return {
            n: torch.rand(s, generator=chance) + (0.1 if len(s) < 2 else -0.5) if s else torch.tensor(70 + len(n))
            for n, s in FUSED.items()
        }
    return fingerprints(architecture_of(name), 0)


def _repairs(folder: Path, nets: tuple[str, ...], *, first: bool) -> tuple[list[dict[str, object]], set[str]]:
    """A job per corruption that is repaired, on the first net (or all) where it is; and the operations that do it."""
    jobs: list[dict[str, object]] = []
    used: set[str] = set()
    for corruption in CORRUPTIONS:
        for net in nets:
            case = corruption.make(dict(_net(net)), random.Random(0))
            if not is_case(corruption, case):
                continue
            planned = _planned(folder / f"{len(jobs)}.pth", corruption, case)
            if planned is None:
                continue
            one, operations = planned
            # In turn where time is short.
            for writer in WRITERS[len(jobs) % 3 :][:1] if first else WRITERS:
                out = folder / f"out{len(jobs)}{writer.suffix}"
                jobs.append({**one, "out": str(out), "options": {"writer": writer.id}})
            used |= operations
            if first:
                break
    return jobs, used


def _planned(path: Path, corruption, case: Damaged) -> tuple[dict[str, object], set[str]] | None:
    truth = path.with_suffix(".target.pth")
    torch.save(case.file, path)
    torch.save(case.truth, truth)
    checkpoint, target = open_checkpoint(path), parse_target(f"file:{truth}", open_file=open_checkpoint)
    said = answered(corruption, checkpoint, target, diagnose(checkpoint, target))
    plan = said.report.plan
    if plan is None or not plan.complete or any(step.value == "initial" for step in plan.steps):
        return None
    one = job(path, path, target=str(truth), accept=list(said.accepted), choose=said.answers)
    return one, {operation_of(step).id for step in plan.steps}


def test_repairs_of_every_kind_are_byte_for_byte_those_with_torch(tmp_path: Path, thorough: bool) -> None:
    jobs, used = _repairs(tmp_path, NETS, first=not thorough)
    assert used >= MOVES and len(jobs) > 45, (MOVES - used, len(jobs))
    ours = [do(each) for each in jobs]
    for each, one, other in zip(jobs, ours, without_torch(jobs, tmp_path), strict=True):
        assert one["sha256"] == other["sha256"] and one["lost"] == other["lost"], each
        missing = "safetensors" if each["options"] == {"writer": "safetensors"} else "torch"
        passed, says = other["proofs"].pop("library")
        assert passed is None and says.endswith(f"was not tried: {missing} is not installed.")
        assert one["proofs"].pop("library")[0] and one["proofs"] == other["proofs"]


def test_what_takes_torchs_own_arithmetic_is_refused_in_a_sentence(tmp_path: Path) -> None:
    kernel, grid = torch.randn(4, 3, 2, 2), torch.randn(1, 17, 8)
    cases = {
        "folded-weights": (
            {"c.weight_g": torch.ones(4, 1, 1, 1), "c.weight_v": kernel},
            {"c.weight": kernel},
            "work out the weight norm of c.weight",
        ),
        "position-grid": ({"pos_embed": grid}, {"pos_embed": torch.randn(1, 26, 8)}, "adapt pos_embed"),
    }
    jobs = []
    for rule, (held, goal, _) in cases.items():
        torch.save({**held, "fc.weight": torch.ones(2, 2)}, tmp_path / f"{rule}.pth")
        torch.save({**goal, "fc.weight": torch.ones(2, 2)}, tmp_path / f"{rule}.target.pth")
        target = str(tmp_path / f"{rule}.target.pth")
        jobs.append(job(tmp_path / f"{rule}.pth", tmp_path / f"{rule}.out.pth", target=target, accept=[rule]))
    assert all("sha256" in do(each) for each in jobs)
    for done, (_, _, what) in zip(without_torch(jobs, tmp_path), cases.values(), strict=True):
        assert done == {
            "error": "MissingLibrary",
            "says": f"Nothing was written: to {what} needs torch, which is not installed. {install_line('torch')}",
            "there": False,
        }


def test_conversions_and_casts_are_byte_for_byte_those_with_torch(tmp_path: Path) -> None:
    state = odd_state()
    state["small"] = torch.randn(300).double() * 1e-6
    state["large"] = torch.randn(300) * 1e38
    torch.save(state, tmp_path / "in.pth")
    plain = {n: t.contiguous() for n, t in state.items() if n not in ("tied", "again", "turned", "row", "eight")}
    save_file(plain, tmp_path / "in.safetensors")
    jobs = []
    for name in ("in.pth", "in.safetensors"):
        for writer in ("pth", "safetensors"):
            for dtype in (None, "float32", "float16", "bfloat16"):
                for shard in (None, 1_000):
                    out = tmp_path / f"out{len(jobs)}{'' if shard else '.x'}"
                    jobs.append(
                        job(tmp_path / name, out, options={"writer": writer, "dtype": dtype, "shard_nbytes": shard})
                    )
    jobs.append(job(tmp_path / "in.pth", tmp_path / "old.x", options={"writer": "pth-legacy"}))
    ours, others = [do(each) for each in jobs], without_torch(jobs, tmp_path)
    # Types that torch 1.5 has not: the same sentence, with torch and without.
    assert ours.pop() == others.pop() and ours[-1]["sha256"]
    for each, one, other in zip(jobs, ours, others, strict=False):
        assert one["sha256"] == other["sha256"] and one["lost"] == other["lost"], each
        assert one["cast"] == other["cast"]
        assert len(one["sha256"]) == 1 or each["options"]["shard_nbytes"]
    assert any("overflow" in one["cast"] and "0 overflows" not in one["cast"] for one in ours)


def test_a_merge_says_that_it_needs_torch(tmp_path: Path) -> None:
    torch.save(odd_state(), tmp_path / "in.pth")
    (done,) = without_torch([job(tmp_path / "in.pth", tmp_path / "x.pth", adapter=str(tmp_path / "in.pth"))], tmp_path)
    assert done["error"] == "MissingLibrary" and not done["there"]
    assert done["says"] == (
        f"Nothing was written: merging in.pth needs torch, which is not installed. {install_line('torch')}"
    )
