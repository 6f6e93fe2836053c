"""Runs a person's own factory and writes down what the model's state dict has. `user_code.py` starts it as a process.

Nothing of this package is imported here: the process stands in the person's folder, with the person's Python.
Arguments: the request as JSON, and the file for the answer. Only names, shapes, element types and what is a buffer come
back; tensors stay behind.
"""

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any


def main(request: dict[str, Any], answer: str) -> None:
    """Write the description of the model, or {"error": why there is none}; what the code raises is left to Python."""
    if request["memory_nbytes"]:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (request["memory_nbytes"], request["memory_nbytes"]))
    try:
        made = describe(build(request))
    except MemoryError:
        made = {"error": "it asked for more memory than it may have"}
    Path(answer).write_text(json.dumps(made), encoding="utf-8")


def build(request: dict[str, Any]) -> Any:
    """What the factory returns."""
    where, name = request["where"], request["factory"]
    sys.path.insert(0, str(Path.cwd()))
    if request["is_file"]:
        sys.path.insert(0, str(Path(where).resolve().parent))
        stem = Path(where).stem
        spec = importlib.util.spec_from_file_location(stem, where)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[stem] = module
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(where)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            names = [n for n in dir(found) if not n.startswith("_") and callable(getattr(found, n))]
            return {"error": "it has no " + name, "names": names[:40]}
        found = getattr(found, part)
    from torch import nn

    if isinstance(found, nn.Module):
        return found
    if not callable(found):
        return {"error": f"{name} is a {type(found).__name__}, neither a factory nor a model"}
    return found(**request["arguments"])


def describe(made: Any) -> dict[str, Any]:
    """Names, shapes, element types and buffer flags, in the state dict's order."""
    import torch
    from torch import nn

    if isinstance(made, dict) and set(made) <= {"error", "names"} and "error" in made:
        return made
    if isinstance(made, nn.Module):
        kind, state = type(made).__name__, made.state_dict(keep_vars=True)
    elif isinstance(made, dict) and made and all(isinstance(v, torch.Tensor) for v in made.values()):
        kind, state = "", made
    else:
        return {"error": f"it returned a {type(made).__name__}, not a torch.nn.Module"}
    tensors = []
    for key, value in state.items():
        if not isinstance(value, torch.Tensor):
            continue  # the extra state of a module is no tensor
        if isinstance(value, (nn.parameter.UninitializedParameter, nn.parameter.UninitializedBuffer)):
            return {"error": f"{key} has no shape before the first forward pass: it is a lazy module"}
        buffer = not isinstance(value, nn.Parameter) if kind else None
        tensors.append([str(key), [int(n) for n in value.shape], str(value.dtype).replace("torch.", ""), buffer])
    return {"kind": kind, "tensors": tensors}


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
