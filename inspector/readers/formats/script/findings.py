"""What is to be said about a TorchScript program before anybody loads it: which of its operators reach further than
arithmetic, and what its code hides.

The operators are those of `torch._C._jit_get_all_schemas()` in torch 2.15 that take a file name, call other processes,
or call back into Python (torch/csrc/jit/runtime/register_special_ops.cpp, register_distributed_ops.cpp,
aten/src/ATen/native/native_functions.yaml); a test compares the list with the installed torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.formats.script.code import CodeFacts, Spot
from inspector.units import counted

SCRIPT_REACHES_SYSTEM = FindingKind(
    "script-reaches-system", Severity.ERROR, "Operators that reach files or other processes"
)
SCRIPT_CUSTOM_OPERATORS = FindingKind(
    "script-custom-operators", Severity.WARNING, "Operators of libraries beside torch"
)
SCRIPT_HIDES_OPERATORS = FindingKind(
    "script-hides-operators", Severity.ERROR, "The code hides which operators it calls"
)
SCRIPT_LOOPS = FindingKind("script-loops", Severity.INFO, "Loops whose end depends on the data, or prints")
TORCHSCRIPT = FindingKind("torchscript", Severity.NOTICE, "A TorchScript program")
SCRIPT_CODE_UNREADABLE = FindingKind("script-code-unreadable", Severity.WARNING, "Code members cannot be read")
SCRIPT_CODE_UNUSED = FindingKind("script-code-unused", Severity.NOTICE, "Code members that nothing uses")

REACHING: dict[str, str] = {
    "aten::save": "writes a file",
    "aten::from_file": "maps a file, and can create or enlarge it",
    "prim::rpc_sync": "runs code in another process",
    "prim::rpc_async": "runs code in another process",
    "prim::rpc_remote": "runs code in another process",
    "prim::PythonOp": "calls Python",
    "prim::IgnoredPythonOp": "calls Python",
    "debugprims::load_tensor": "reads a file",
}
# Every operator of these talks to other processes or their memory.
NETWORK = frozenset(
    {"c10d", "_c10d_functional", "c10d_functional", "_c10d_functional_autograd", "symm_mem", "_dtensor", "fsdp"}
)
# Namespaces of operators inside torch (and torchvision) that compute, or note what the process does.
COMPUTING = frozenset(
    {
        "aten", "prim", "prims", "quantized", "_quantized", "quantization", "torchvision", "mkldnn", "mkldnn_prepacked",
        "mkl", "onednn", "sparse", "onnx", "cuda", "coor", "static_runtime", "profiler", "inductor", "inductor_prims",
        "rngprims", "debugprims", "debug_mode_ops", "export", "flex_gemm", "_native", "_native_aot", "_test",
    }
)  # fmt: skip
# Namespaces of the classes that torch itself registers for quantised and prepacked weights.
OWN_CLASSES = frozenset({"quantized", "rnn", "sparse", "mkldnn", "xnnpack", "vulkan", "metal", "cuda", "profiling"})
_LISTED = 20


def observe_code(facts: Sequence[CodeFacts]) -> list[Finding]:
    """Findings about the code members of one archive."""
    found = [_reaching(facts), _custom(facts), _hidden(facts), _loops(facts)]
    return [finding for finding in found if finding is not None]


def reach_of(operator: str) -> str:
    """What an operator does beyond arithmetic, "" for those that only compute or are not known."""
    if operator.partition("::")[0] in NETWORK:
        return "talks to other processes"
    return REACHING.get(operator, "")


def _where(spot: Spot) -> str:
    return f"{spot.name[:80]} ({spot.member[:120]}, line {spot.line:,})"


def _first(spots: Iterable[Spot]) -> dict[str, Spot]:
    found: dict[str, Spot] = {}
    for spot in spots:
        found.setdefault(spot.name, spot)
    return found


def _reaching(facts: Sequence[CodeFacts]) -> Finding | None:
    spots = _first(s for f in facts for s in f.operators.values() if reach_of(s.name))
    spots |= {s.name: s for f in facts for s in f.classes.values() if s.name.partition(".")[0].startswith("dist_")}
    if not spots:
        return None
    first = next(iter(spots.values()))
    return SCRIPT_REACHES_SYSTEM.found(
        f"The program names {counted(len(spots), 'operator')} that reach files or other processes: "
        f"{'; '.join(_where(s) for s in list(spots.values())[:3])}{' …' if len(spots) > 3 else ''}. "
        f"{first.name[:80]} {reach_of(first.name) or 'talks to other processes'}. Nothing was run here.",
        subjects=tuple(spots)[:_LISTED],
        evidence=(("operators", len(spots)), ("member", first.member[:200]), ("line", first.line)),
        remedy="Do not load it with torch.jit.load unless you trust whoever made it; convert it instead.",
    )


def _custom(facts: Sequence[CodeFacts]) -> Finding | None:
    spots = _first(
        s
        for f in facts
        for s in f.operators.values()
        if s.name.partition("::")[0] not in COMPUTING and s.name.partition("::")[0] not in NETWORK
    )
    spots |= {
        f"class {s.name}": s
        for f in facts
        for s in f.classes.values()
        if s.name.partition(".")[0] not in OWN_CLASSES and not s.name.startswith("dist_")
    }
    if not spots:
        return None
    listed = list(spots.values())
    return SCRIPT_CUSTOM_OPERATORS.found(
        f"The program names {counted(len(spots), 'operator or class', 'operators or classes')} of libraries "
        f"beside torch: {'; '.join(_where(s) for s in listed[:3])}{' …' if len(spots) > 3 else ''}. "
        "What they do is not in the file.",
        subjects=tuple(spots)[:_LISTED],
        evidence=(("names", len(spots)),),
        remedy="torch.jit.load needs the library that registers them; it can be converted without it.",
    )


def _hidden(facts: Sequence[CodeFacts]) -> Finding | None:
    spots = [s for f in facts for s in f.hidden]
    if not spots:
        return None
    return SCRIPT_HIDES_OPERATORS.found(
        f"The code hides which operators it calls in {counted(len(spots), 'place')}, first "
        f"{_where(spots[0])}: a namespace is used as a value, or a string does not end. torch never writes that.",
        subjects=tuple(f"{s.member}:{s.line}" for s in spots[:_LISTED]),
        evidence=(("places", len(spots)),),
        remedy="It was written by hand: do not load it with torch.jit.load. It can be converted here.",
    )


def _loops(facts: Sequence[CodeFacts]) -> Finding | None:
    loops, prints = [s for f in facts for s in f.loops], [s for f in facts for s in f.prints]
    if not loops and not prints:
        return None
    parts = []
    if loops:
        parts.append(f"{counted(len(loops), 'while loop')} whose end depends on the data, first {_where(loops[0])}")
    if prints:
        parts.append(f"{counted(len(prints), 'print')}, first {_where(prints[0])}")
    return SCRIPT_LOOPS.found(
        f"The program has {' and '.join(parts)}.",
        evidence=(("while_loops", len(loops)), ("prints", len(prints))),
        remedy="Ordinary programs have them too; a loop can also run for ever.",
    )


def script_finding(code_files: int) -> Finding:
    """The sentence under every TorchScript file."""
    return TORCHSCRIPT.found(
        f"This is a TorchScript program ({counted(code_files, 'code file')}), not a plain checkpoint; "
        "its tensors are shown, its code is shown as text and was not run.",
        evidence=(("code_files", code_files),),
        remedy="torch.jit.load runs the program inside and has no restricted mode. Convert it here instead.",
    )


def unreadable_finding(problems: Sequence[str]) -> Finding:
    """Code members that cannot be shown."""
    return SCRIPT_CODE_UNREADABLE.found(
        f"{counted(len(problems), 'code member')} cannot be read as text: {problems[0]}.",
        subjects=tuple(problems[:_LISTED]),
        evidence=(("members", len(problems)),),
        remedy="What that code does is not known here; do not load the file with torch.jit.load.",
    )


def unused_finding(members: Sequence[str]) -> Finding:
    """Code members that neither the pickled objects nor the code they need refer to."""
    return SCRIPT_CODE_UNUSED.found(
        f"{counted(len(members), 'code member')} belong to no object of the file, first {members[0][:120]}.",
        subjects=tuple(m[:200] for m in members[:_LISTED]),
        evidence=(("members", len(members)),),
        remedy="torch.jit.save writes only the code it needs; the rest was added by another program.",
    )
