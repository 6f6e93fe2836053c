"""What others do with the same cases: their own code where it is installed, written anew from its description if not.

`python -m pip install -e ".[bench]"` brings timm and weightbridge; without them the benchmark says so and goes on.
"""

from __future__ import annotations

import importlib.util
import math
import multiprocessing
import resource
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from types import SimpleNamespace

import torch
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present

from benchmarks.keybench.damage import Answer, Damaged, State
from benchmarks.keybench.score import Outcome, judge, loads_strictly

Shape = tuple[int, ...]
# Seconds on the clock per second of processor time, before a process is given up.
PATIENCE = 30
# The state dict that the tool would hand to load_state_dict. Raises when the tool refuses.
Method = Callable[[State, Mapping[str, Shape]], State]


@dataclass(frozen=True)
class Peer:
    """own: written anew here, from the tool's description. slow: run in a process of its own, with a time limit."""

    name: str
    method: Method
    own: bool = False
    slow: bool = False


def _plain(file: State, goal: Mapping[str, Shape]) -> State:
    return file


def _consumed(file: State, goal: Mapping[str, Shape]) -> State:
    made = dict(file)
    consume_prefix_in_state_dict_if_present(made, "module.")
    return made


def _expected(goal: Mapping[str, Shape]) -> State:
    with torch.device("meta"):
        return {name: torch.empty(shape) for name, shape in goal.items()}


def _timm_clean(file: State, goal: Mapping[str, Shape]) -> State:
    from timm.models._helpers import clean_state_dict

    made: State = clean_state_dict(file)
    return made


def _timm_remap(file: State, goal: Mapping[str, Shape]) -> State:
    from timm.models._helpers import remap_state_dict

    model = SimpleNamespace(state_dict=lambda: _expected(goal))
    made: State = remap_state_dict(file, model)
    return made


def _clean(file: State, goal: Mapping[str, Shape]) -> State:
    """Leading "module." and "_orig_mod." taken off, in either order."""
    made = {}
    for key, tensor in file.items():
        for prefix in ("_orig_mod.", "module.", "_orig_mod."):
            key = key.removeprefix(prefix)
        made[key] = tensor
    return made


def _remap(file: State, goal: Mapping[str, Shape]) -> State:
    """In order, reshaped to fit, as long as the numbers of elements agree."""
    made = {}
    for (name, shape), tensor in zip(goal.items(), file.values(), strict=False):
        made[name] = tensor.reshape(shape)
    return made


def _longest_suffix(file: State, goal: Mapping[str, Shape]) -> State:
    """Each place takes the file's longest key that it ends with; one key for two places is an error (detectron2)."""
    made, used = {}, set()
    for name, shape in goal.items():
        parts = name.split(".")
        ends = (".".join(parts[i:]) for i in range(len(parts)))
        key = next((end for end in ends if end in file), None)
        if key is not None and tuple(file[key].shape) == shape:
            if key in used:
                raise ValueError(f"{key} fits several places")
            used.add(key)
            made[name] = file[key]
    return made


def _weightbridge(file: State, goal: Mapping[str, Shape]) -> State:
    import weightbridge  # type: ignore[import-not-found]

    expected = {name: torch.empty(shape) for name, shape in goal.items()}
    with redirect_stdout(StringIO()):
        made: State = weightbridge.adapt(file, expected)
    return made


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def peers() -> tuple[list[Peer], list[str]]:
    """(those that can run here, what is missing and how it is done without)."""
    found = [Peer("load_state_dict", _plain), Peer("consume_prefix_in_state_dict_if_present", _consumed)]
    missing = []
    if _has("timm"):
        found += [Peer("timm clean_state_dict", _timm_clean), Peer("timm remap_state_dict", _timm_remap)]
    else:
        found += [Peer("timm clean_state_dict", _clean, own=True), Peer("timm remap_state_dict", _remap, own=True)]
        missing.append("timm is not installed: its two ways are written anew from their description.")
    found.append(Peer("longest suffix (detectron2)", _longest_suffix, own=True))
    if _has("weightbridge"):
        found.append(Peer("weightbridge", _weightbridge, slow=True))
    else:
        missing.append("weightbridge is not installed and left out.")
    return found, missing


def run_peer(peer: Peer, case: Damaged) -> Outcome:
    """What the tool makes of a case. Every way to fail is a refusal: nothing was loaded."""
    started = time.process_time()
    try:
        made = peer.method(case.file, case.goal)
    except Exception:  # noqa: BLE001 a tool's own errors are its refusals, whatever they are
        return Outcome(placed={}, strict=False, refused=True, seconds=time.process_time() - started)
    seconds = time.process_time() - started
    goal = case.goal
    # As load_state_dict does with one element where none is asked for.
    plain = {n: t.reshape(()) if goal.get(n) == () and t.shape == (1,) else t for n, t in made.items()}
    fits = {name: tensor for name, tensor in plain.items() if tuple(tensor.shape) == goal.get(name)}
    return Outcome(placed=fits, strict=loads_strictly(made, goal), seconds=seconds)


Verdict = tuple[int, int, bool, bool, bool, float]  # right, wrong, silent, strict, refused, seconds


def judge_within(peer: Peer, case: Damaged, expects: Answer, most_seconds: float) -> tuple[Verdict, bool]:
    """(the verdict, whether the time ran out), from a process of its own, which can be ended.

    most_seconds: of processor time, so that a busy machine takes nothing away from the tool.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def work() -> None:
        limit = math.ceil(time.process_time() + most_seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        outcome = run_peer(peer, case)
        right, wrong, silent = judge(case, outcome, expects)
        theirs.send((right, len(wrong), silent, outcome.strict, outcome.refused, outcome.seconds))

    process = context.Process(target=work, daemon=True)
    process.start()
    theirs.close()
    try:
        if ours.poll(PATIENCE * most_seconds):
            verdict: Verdict = ours.recv()
            return verdict, False
    except EOFError:
        pass
    finally:
        process.kill()
        process.join()
        ours.close()
    return (0, 0, False, False, True, most_seconds), True
