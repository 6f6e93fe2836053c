"""docs/python.md: the public names with their signatures and docstrings, in the order in which one needs them."""

from __future__ import annotations

import ast
import inspect
import textwrap

import inspector

SECTIONS = {
    "Open": ("open_checkpoint", "summarise", "Checkpoint", "to_torch", "to_state_dict"),
    "What is it": ("recognise", "count_parameters", "measure_weights", "inspect", "Question", "project_rows"),
    "Is it any good": ("examine", "Thresholds", "check", "CheckRequest", "Settings"),
    "Compare and repair": (
        "compare_checkpoints", "parse_target", "target_of", "target_of_candidate", "diagnose", "apply_plan",
        "load_repaired", "python_code", "check_loaded",
    ),
    "Cut and freeze": ("plan_surgery", "Drop", "Extract", "NewHead", "freeze_code"),
    "Write": ("export_repaired", "export_as_is", "merge_adapter"),
    "Hand on": ("make_report", "report_html", "report_json", "read_report"),
    "Run": (
        "ready_model", "build_model", "count_costs", "trace_model", "map_features", "MapsAsked", "maps_sheet",
        "propose_layers", "stated_preprocessing", "explain", "overlay", "evaluate_pictures",
    ),
    "Errors": ("InspectorError", "NotLoaded"),
}  # fmt: skip


def python_page() -> str:
    """Markdown. Raises LookupError for a public name that has no section."""
    left = set(inspector.__all__) - {name for names in SECTIONS.values() for name in names}
    if left:
        raise LookupError(f"Public names without a section in docs/python.md: {', '.join(sorted(left))}.")
    says = "Every public name: `from inspector import ...`. Importing the package imports neither torch nor NumPy."
    parts = ["# In Python", "", says]
    for section, names in SECTIONS.items():
        parts += ["", f"## {section}"]
        for name in names:
            parts += ["", f"### `{name}`", "", *_described(getattr(inspector, name))]
    return "\n".join(parts) + "\n"


def _described(thing: object) -> list[str]:
    said = inspect.getdoc(thing) or ""
    if inspect.isclass(thing):
        return [said]
    return ["```python", _signature(thing), "```", "", said]


def _signature(function: object) -> str:
    """As its source writes it, an argument a line where it is long."""
    assert callable(function)
    (made,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(made, ast.FunctionDef) and made.returns is not None
    returns, arguments = ast.unparse(made.returns), ast.unparse(made.args)
    line = f"{made.name}({arguments}) -> {returns}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{made.name}(", *(f"    {one}," for one in _apart(arguments)), f") -> {returns}"])


def _apart(arguments: str) -> list[str]:
    """Split at the commas that stand in no bracket."""
    parts, depth = [""], 0
    for letter in arguments:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
