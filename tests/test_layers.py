"""Imports point downwards only: faces, render and inspection, slices, architectures, checkpoint, readers' floor."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.house_parsed import ROOT, house, in_one_worker

PACKAGE = ROOT / "inspector"
pytestmark = in_one_worker

FLOOR = (
    "errors",
    "findings",
    "progress",
    "units",
    "limits",
    "openmp",
    "gc_pause",
    "kept_with",
    "side_files",
    "new_files",
    "shell_lines",
    "short_repr",
    "path_text",
    "installed",
    "reports_from_json",
)
SLICES = (
    "params",
    "flops",
    "graph",
    "doctor",
    "weights",
    "health",
    "keys",
    "surgery",
    "cam",
    "exports",
    "error_messages",
    "events",
    "compare",
    "projector",
    "run",
)

# A part may import its own files, the floor, and what is named here.
ALLOWED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(FLOOR, ()),
    "checkpoint": (),
    # Bytes behind addresses.
    "remote": ("checkpoint",),
    # A forward pass, watched: who counts, draws or diagnoses listens.
    "forward": ("architectures",),
    "readers": ("checkpoint", "remote"),
    "architectures": ("checkpoint",),
    **dict.fromkeys(SLICES, ("checkpoint", "architectures")),
    # Work over many pieces, anywhere: it knows nothing of what it runs, and may keep what it gives in a bucket.
    "sweep": ("remote",),
    "survey": ("checkpoint", "readers", "remote", "architectures", "params", "sweep"),
    # One file's numbers, and what two differ in, wherever they are worked out.
    "giants": ("checkpoint", "readers", "remote", "weights", "compare", "sweep"),
    # Many files held against what may be wrong with them: what the headers say, and what the numbers say.
    "lint": ("checkpoint", "remote", "readers", "survey", "health", "sweep"),
    # What an audit left in a store, as tables to be asked.
    "catalogue": ("sweep", "survey", "lint"),
    "ready": ("checkpoint", "architectures", "cam", "keys"),
    # A network that can be built, watched once for its graph.
    "traced": ("architectures", "flops", "forward", "graph"),
    # One tensor of a pass, pictured: the doctor runs it, the heat maps know how it lies.
    "feature_maps": ("architectures", "doctor", "cam"),
    # Rows of a file's tensor as a map: what they are called is known to the heat maps.
    "projections": ("checkpoint", "architectures", "cam", "health", "projector"),
    # Which files of folders and archives a training left: folders are walked as a survey walks them.
    "run_files": ("checkpoint", "readers", "survey", "events", "run"),
    # A model that runs, on pictures in class folders: these are read as archives and folders of checkpoints are, and
    # scored piece by piece wherever pieces run.
    "evaluate": ("checkpoint", "readers", "architectures", "cam", "sweep"),
    # A model in memory against a file: names by the repair, numbers as they are compared, initialisers as Health's.
    "loaded": ("checkpoint", "readers", "architectures", "keys", "doctor", "health", "render"),
    # What a test suite asks of it.
    "testing": ("loaded",),
    "inspection": ("checkpoint", "readers", "architectures", *SLICES),
    # What a person or a gate is told of a file, from what the slices know.
    "cards": ("checkpoint", "readers", "architectures", "params"),
    "overview": ("checkpoint", "architectures", "inspection", "keys"),
    "file_report": ("checkpoint", "architectures", "inspection", "overview", *SLICES),
    "render": (
        *("checkpoint", "architectures", "inspection", "overview", "survey", "lint", "cards", "evaluate"),
        "file_report",
        *SLICES,
    ),
    # What a notebook shows for a report: the result types know nothing of it.
    "notebook": ("checkpoint", "overview", "file_report", "render", *SLICES),
    "cli": (
        "checkpoint",
        "readers",
        "architectures",
        "ready",
        "traced",
        "feature_maps",
        "projections",
        "run_files",
        "inspection",
        "overview",
        "survey",
        "sweep",
        "giants",
        "lint",
        "catalogue",
        "cards",
        "evaluate",
        "file_report",
        "render",
        "textconv",
        *SLICES,
    ),
    # A page without a server: the command line's questions, answered in JSON.
    "browser": (
        *(
            "checkpoint",
            "readers",
            "architectures",
            "inspection",
            "overview",
            "survey",
            "lint",
            "file_report",
            "render",
        ),
        *SLICES,
    ),
    # Reports of workers are drawn by pages, and some are drawn where they are made.
    "jobs": (
        "remote",
        *("checkpoint", "readers", "architectures", "ready", "traced", "feature_maps", "projections", "evaluate"),
        *("survey", "render", "run_files", "catalogue"),
        *SLICES,
    ),
    "web": (
        "remote",
        *(
            "checkpoint",
            "readers",
            "architectures",
            "ready",
            "projections",
            "inspection",
            "overview",
            "survey",
            "evaluate",
            "file_report",
            "render",
            "catalogue",
        ),
        "jobs",
        *SLICES,
    ),
    "__init__": (
        *("checkpoint", "readers", "architectures", "ready", "projections", "inspection", "overview", "survey", "lint"),
        "evaluate",
        "file_report",
        "loaded",
        "notebook",
        "render",
        *SLICES,
    ),
    # git's question, answered without the command line's machinery.
    "textconv": ("checkpoint", "readers", "compare"),
    "__main__": ("cli", "textconv"),
}
# A slice may see another slice's result types, and export needs what it exports.
EXTRA: dict[str, tuple[str, ...]] = {
    "exports": ("keys", "readers"),
    # What the numbers say needs the numbers, and what an optimizer's entries belong to.
    "health": ("weights", "keys"),
    # What is left out, taken out or new is a plan of steps like a repair's.
    "surgery": ("keys",),
    # An error is explained with the rules of the repair and the verdicts on globals.
    "error_messages": ("keys", "readers"),
    # Vectors are read as they are measured, and the health checks say which of them are dead.
    "projector": ("weights", "health", "readers"),
    # Which norm stands before which kernel is read from the graph of one pass.
    "keys": ("graph",),
    "flops": ("forward",),
    "graph": ("forward", "readers"),
    # What TensorBoard is shown of weights, of what moved, and of graphs; and the readers' wire format.
    "events": ("weights", "compare", "graph", "readers"),
    "doctor": ("forward",),
    # Many pictures go through a model piece by piece, wherever pieces run.
    "cam": ("sweep",),
    "params": (),
    # Two files are paired by names, by their tables or by the repair plan between them, and their numbers are decoded.
    # Which of a side's tensors are parameters is counted as everywhere.
    "compare": ("weights", "keys", "params"),
    # The checkpoints and event files of one training, one after the other.
    "run": ("weights", "compare", "health", "events", "readers"),
}


def _part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _against_the_layers(path: Path) -> Iterator[str]:
    part = _part(path)
    if part not in ALLOWED:
        yield f"{part} is a new part: give it a place in ALLOWED"
        return
    allowed = {part, *FLOOR, *ALLOWED[part], *EXTRA.get(part, ())}
    for name in house().imported(path):
        if not name.startswith("inspector."):
            continue
        pieces = name.split(".")
        other = pieces[1]
        if other in allowed or (not (PACKAGE / other).exists() and not (PACKAGE / f"{other}.py").exists()):
            continue
        is_report = len(pieces) > 2 and pieces[2] == "report"
        if not (part in SLICES and other in SLICES and is_report):
            yield f"{path.relative_to(PACKAGE)} in {part} imports {name}"


def test_imports_point_downwards() -> None:
    assert [says for path in house().files for says in _against_the_layers(path)] == []


def test_streamlit_only_in_web() -> None:
    files = [path for path in house().files if _part(path) != "web"]
    assert [str(p) for p in files if "streamlit" in {name.split(".")[0] for name in house().imported(p)}] == []


NO_TORCH = (
    *(
        "checkpoint",
        "remote",
        "readers",
        "params",
        "weights",
        "error_messages",
        "render",
        "inspection",
        "overview",
        "cli",
    ),
    *("survey", "health", "lint", "compare", "textconv", "events", "run", "file_report", "notebook", "browser"),
    "__init__",
    *FLOOR,
)
TORCH_BY_NAME = {"torch_bridge.py"}
HEAVY = {"torch", "torchvision", "thop"}


def test_torch_stays_out_of_the_light_parts() -> None:
    light = [path for path in house().files if _part(path) in NO_TORCH and path.name not in TORCH_BY_NAME]
    assert [
        str(p) for p in light if {name.split(".")[0] for name in house().imported(p, everywhere=False)} & HEAVY
    ] == []


# What only workers import.
OF_WORKERS = ("jobs/kinds/", "jobs/preload.py", "jobs/worker.py")


def test_torch_is_named_by_workers_alone() -> None:
    """The web process, the broker and their messages: not at their start, and not in a function either."""
    ours = [path for path in house().files if _part(path) in ("web", "jobs")]
    others = [path for path in ours if not path.relative_to(PACKAGE).as_posix().startswith(OF_WORKERS)]
    assert len(others) > 60
    assert [str(p) for p in others if {name.split(".")[0] for name in house().imported(p)} & HEAVY] == []


def test_files_stay_readable() -> None:
    long = {str(p.relative_to(ROOT)): n for p in house().files if (n := len(p.read_text().splitlines())) > 420}
    assert not long, f"over 420 lines: {long}"


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("torch", "torchvision", "streamlit", "numpy", "pandas", "duckdb", "distributed", "fsspec")
    code = f"import inspector, sys; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"


def test_no_file_imports_itself_through_others() -> None:
    """Neither when it is imported, nor inside a function, nor for a type."""
    assert house().circles(everywhere=True) == []
