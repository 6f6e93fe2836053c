"""The two plain lines, on every file of a folder, with the torch of the Python that runs this. Prints JSON.

    python run_torch.py FOLDER < jobs.json

jobs: kind -> [path, {name: [shape, dtype]}]. Imports nothing of this repository, so that any torch can run it.
"""

import json
import sys
import warnings

import torch


def shell(shapes):
    """A model with these names and shapes, which computes nothing."""
    root = torch.nn.Module()
    for name, (shape, dtype) in shapes.items():
        *path, leaf = name.split(".")
        module = root
        for part in path:
            if part not in module._modules:
                module.add_module(part, torch.nn.Module())
            module = module._modules[part]
        tensor = torch.zeros(shape, dtype=getattr(torch, dtype))
        if tensor.is_floating_point() and not leaf.startswith("running_"):
            module.register_parameter(leaf, torch.nn.Parameter(tensor))
        else:
            module.register_buffer(leaf, tensor)
    return root


def outcome(path, shapes):
    """(what came of reading, what came of loading): "" for success, else the exception's first line."""
    try:
        if path.endswith(".safetensors"):
            from safetensors.torch import load_file

            state = load_file(path)
        else:
            state = torch.load(path)
    except Exception as error:  # noqa: BLE001 whatever a file makes torch raise
        return f"{type(error).__name__}: {error}", None
    try:
        shell(shapes).load_state_dict(state)
    except Exception as error:  # noqa: BLE001 whatever a file makes torch raise
        return "", f"{type(error).__name__}: {error}"
    return "", ""


def main():
    warnings.simplefilter("ignore")
    jobs = json.load(sys.stdin)
    answers = {kind: outcome(*job) for kind, job in jobs.items()}
    print(json.dumps({"torch": torch.__version__, "answers": answers}))


if __name__ == "__main__":
    main()
