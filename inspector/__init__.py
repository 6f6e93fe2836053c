"""Model Inspector: opens any PyTorch-ecosystem checkpoint without running anything inside it.

    from inspector import open_checkpoint, recognise, target_of_candidate, diagnose, export_repaired

    checkpoint = open_checkpoint("model.pth.tar")
    target = target_of_candidate(recognise(checkpoint).best)
    report = diagnose(checkpoint, target)
    export_repaired(checkpoint, report.plan, target, "model.safetensors", writer="safetensors")

Public names are imported on first use, so that `import inspector` loads neither torch nor streamlit. In a notebook a
checkpoint, a diagnosis, a heat map and a file's report show themselves (`notebook.py`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.architectures.build import build_model
    from inspector.architectures.recognise import recognise
    from inspector.architectures.targets import parse_target, target_of, target_of_candidate
    from inspector.cam.explain import explain
    from inspector.cam.inputs.preprocess import stated_preprocessing
    from inspector.cam.layers.proposals import propose_layers
    from inspector.checkpoint.torch_bridge import to_state_dict, to_torch
    from inspector.checkpoint.types import Checkpoint
    from inspector.compare.diff import compare_checkpoints
    from inspector.doctor.feature_maps import map_features
    from inspector.doctor.maps_asked import MapsAsked
    from inspector.doctor.trace import trace_model
    from inspector.errors import InspectorError
    from inspector.evaluate.run import evaluate_pictures
    from inspector.exports.convert import export_as_is
    from inspector.exports.export import export_repaired
    from inspector.exports.merge import merge_adapter
    from inspector.file_report.make import make_report
    from inspector.file_report.read import read_report
    from inspector.flops.count import count_costs
    from inspector.health.examine import examine
    from inspector.health.thresholds import Thresholds
    from inspector.inspection import Question, inspect
    from inspector.keys.apply import apply_plan, load_repaired
    from inspector.keys.code import python_code
    from inspector.keys.diagnose import diagnose
    from inspector.lint.check import check
    from inspector.lint.request import CheckRequest, Settings
    from inspector.loaded.check import check_loaded
    from inspector.loaded.report import NotLoaded
    from inspector.overview import summarise
    from inspector.params.count import count_parameters
    from inspector.projections import project_rows
    from inspector.readers import open_checkpoint
    from inspector.ready import ready_model
    from inspector.render.feature_maps import maps_sheet
    from inspector.render.overlay import overlay
    from inspector.render.page_report.page import report_html, report_json
    from inspector.surgery.freeze import freeze_code
    from inspector.surgery.plan import plan_surgery
    from inspector.surgery.report import Drop, Extract, NewHead
    from inspector.weights.measure import measure_weights

_HOMES = {
    "CheckRequest": "inspector.lint.request",
    "Checkpoint": "inspector.checkpoint.types",
    "Drop": "inspector.surgery.report",
    "Extract": "inspector.surgery.report",
    "InspectorError": "inspector.errors",
    "MapsAsked": "inspector.doctor.maps_asked",
    "NewHead": "inspector.surgery.report",
    "NotLoaded": "inspector.loaded.report",
    "Question": "inspector.inspection",
    "Settings": "inspector.lint.request",
    "Thresholds": "inspector.health.thresholds",
    "apply_plan": "inspector.keys.apply",
    "build_model": "inspector.architectures.build",
    "check": "inspector.lint.check",
    "check_loaded": "inspector.loaded.check",
    "compare_checkpoints": "inspector.compare.diff",
    "count_costs": "inspector.flops.count",
    "count_parameters": "inspector.params.count",
    "diagnose": "inspector.keys.diagnose",
    "evaluate_pictures": "inspector.evaluate.run",
    "examine": "inspector.health.examine",
    "explain": "inspector.cam.explain",
    "export_as_is": "inspector.exports.convert",
    "export_repaired": "inspector.exports.export",
    "freeze_code": "inspector.surgery.freeze",
    "inspect": "inspector.inspection",
    "load_repaired": "inspector.keys.apply",
    "make_report": "inspector.file_report.make",
    "map_features": "inspector.doctor.feature_maps",
    "maps_sheet": "inspector.render.feature_maps",
    "measure_weights": "inspector.weights.measure",
    "merge_adapter": "inspector.exports.merge",
    "open_checkpoint": "inspector.readers",
    "overlay": "inspector.render.overlay",
    "parse_target": "inspector.architectures.targets",
    "plan_surgery": "inspector.surgery.plan",
    "project_rows": "inspector.projections",
    "propose_layers": "inspector.cam.layers.proposals",
    "python_code": "inspector.keys.code",
    "read_report": "inspector.file_report.read",
    "ready_model": "inspector.ready",
    "recognise": "inspector.architectures.recognise",
    "report_html": "inspector.render.page_report.page",
    "report_json": "inspector.render.page_report.page",
    "stated_preprocessing": "inspector.cam.inputs.preprocess",
    "summarise": "inspector.overview",
    "target_of": "inspector.architectures.targets",
    "target_of_candidate": "inspector.architectures.targets",
    "to_state_dict": "inspector.checkpoint.torch_bridge",
    "to_torch": "inspector.checkpoint.torch_bridge",
    "trace_model": "inspector.doctor.trace",
}

__all__ = [
    "CheckRequest",
    "Checkpoint",
    "Drop",
    "Extract",
    "InspectorError",
    "MapsAsked",
    "NewHead",
    "NotLoaded",
    "Question",
    "Settings",
    "Thresholds",
    "apply_plan",
    "build_model",
    "check",
    "check_loaded",
    "compare_checkpoints",
    "count_costs",
    "count_parameters",
    "diagnose",
    "evaluate_pictures",
    "examine",
    "explain",
    "export_as_is",
    "export_repaired",
    "freeze_code",
    "inspect",
    "load_repaired",
    "make_report",
    "map_features",
    "maps_sheet",
    "measure_weights",
    "merge_adapter",
    "open_checkpoint",
    "overlay",
    "parse_target",
    "plan_surgery",
    "project_rows",
    "propose_layers",
    "python_code",
    "read_report",
    "ready_model",
    "recognise",
    "report_html",
    "report_json",
    "stated_preprocessing",
    "summarise",
    "target_of",
    "target_of_candidate",
    "to_state_dict",
    "to_torch",
    "trace_model",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("inspector.installed").own_version()
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'inspector' has no attribute {name!r}")
    try:
        return getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        says = import_module("inspector.installed").missing_package(error)
        if not says:
            raise
        raise ModuleNotFoundError(f"inspector.{name}: {says}", name=error.name) from error


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


if "IPython" in sys.modules:
    import_module("inspector.notebook").show_reports()
