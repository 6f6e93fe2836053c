"""Runs a person's own factory and writes down what the model's state dict has. `user_code.py` starts it as a process.

Nothing of this package is imported here: the process stands in the person's folder, with the person's Python.
Arguments: the request as JSON, and the file for the answer. Only names, shapes, element types and what is a buffer come
back; tensors stay behind. With a trial in the request (`code_trial.py`) the model is loaded and run instead; with a
call it is given to a function of this package, which is imported only then, and found behind all that is the person's.
"""

import importlib
import importlib.util
import json
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

# What a forward pass of the person's own raises is an answer about the input, not the end of the trial.
_FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def main(request: dict[str, Any], answer: str) -> None:
    """Write the description of the model, or {"error": why there is none}."""
    if request["memory_nbytes"]:
        import resource

        # Of what is written, not of the address space: torch alone maps gigabytes of files.
        resource.setrlimit(resource.RLIMIT_DATA, (request["memory_nbytes"], request["memory_nbytes"]))
    try:
        built = build(request)
        if request.get("follow"):
            made = describe_sizes(built, request)
        elif request["trial"]:
            made = attempt(built, request["trial"])
        else:
            made = hand_over(built, request["call"]) if request["call"] else describe(built)
    except MemoryError:
        allowed = f"the {request['memory_nbytes'] / 1e9:.1f} GB" if request["memory_nbytes"] else "what"
        made = {"error": f"it asked for more memory than {allowed} it may have", "raised": True}
    except SystemExit as error:
        made = {"error": f"it ended the program by itself, with exit code {error.code or 0}", "raised": True}
    except Exception as error:  # noqa: BLE001 their code may raise anything
        made = {"error": raised(error), "raised": True, **place_of(error)}
    Path(answer).write_text(json.dumps(made), encoding="utf-8")


def own_frames(error: Exception) -> list[Any]:
    """The frames of their own code, outermost first."""
    import traceback

    # This file runs as a text of its own, or as a part of this package.
    package = str(Path(__file__).resolve().parents[1]) if "__file__" in globals() else "<"
    others = ("<", package, sys.base_prefix)
    frames = traceback.extract_tb(error.__traceback__)
    return [f for f in frames if not f.filename.startswith(others) and "site-packages" not in f.filename]


def place_of(error: Exception) -> dict[str, Any]:
    """Its class, what it says, and the line of their own code that raised it."""
    own = own_frames(error)
    file, line = (Path(own[-1].filename).name, own[-1].lineno or 0) if own else ("", 0)
    text = (own[-1].line or "").strip()[:400] if own else ""
    says = words_of(error)
    return {"kind": type(error).__name__, "says": says, "file": file, "line": line, "text": text}


def words_of(error: Exception) -> str:
    """What it says, in one line; of a traceback within it the last line, which says what it was.

    Python quotes what a KeyError or an error of several arguments was given, and so escapes its line breaks.
    """
    words = [arg for arg in error.args if isinstance(arg, str)]
    quoted = bool(words) and (len(error.args) > 1 or isinstance(error, KeyError))
    text = max(words, key=len) if quoted and any("\n" in word for word in words) else str(error)
    if text.count("\\n") > 1 and "\n" not in text:
        text = text.replace("\\n", "\n")
    before, trace, frames = text.partition("Traceback (most recent call last):")
    if trace and frames.strip():
        text = f"{before.strip()} {frames.strip().splitlines()[-1]}"
    return " ".join(text.split())[:1000]


def raised(error: Exception) -> str:
    """What it was and where in their own code, without the frames between."""
    own = own_frames(error)
    where = f", in {Path(own[-1].filename).name} line {own[-1].lineno}" if own else ""
    says = words_of(error).rstrip(".")
    return f"it raised {type(error).__name__}: {says}{where}" if says else f"it raised {type(error).__name__}{where}"


def hand_over(made: Any, call: dict[str, Any]) -> dict[str, Any]:
    """What a function of this package says of the model. call: its "function", "arguments" and the package's "root"."""
    if isinstance(made, dict) and set(made) <= {"error", "names"} and "error" in made:
        return made
    sys.path.append(call["root"])
    module, _, name = call["function"].partition(":")
    answer: dict[str, Any] = getattr(importlib.import_module(module), name)(made, **call["arguments"])
    return answer


def build(request: dict[str, Any]) -> Any:
    """What the factory returns."""
    found = factory_of(request)
    if isinstance(found, dict) or not callable(found):
        return found
    import torch

    if isinstance(found, torch.nn.Module):
        return found
    if request.get("follow"):
        # What has no default and is a size that a file shows is no reason to fail before the file was looked at.
        request["arguments"] = {**usual_sizes(found, request["arguments"]), **request["arguments"]}
    return one_model(found(**request["arguments"]))


def factory_of(request: dict[str, Any]) -> Any:
    """What the request names: a class, a function or a model; {"error": ...} where it is none of them."""
    import torch

    # The same weights each time, and no part in what a program of theirs draws later.
    torch.manual_seed(0)
    where, name = request["where"], request["factory"]
    sys.path.insert(0, str(Path.cwd()))
    if request["is_file"]:
        sys.path.insert(0, str(Path(where).resolve().parent))
        # Under a name of its own where a module of that name is in use already (json.py).
        stem = Path(where).stem if Path(where).stem not in sys.modules else "own_" + Path(where).stem
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

    if not callable(found) and not isinstance(found, nn.Module):
        return {"error": f"{name} is a {type(found).__name__}, neither a factory nor a model"}
    return found


# What people call the number of classes and of input channels, with a usual number for what has no default.
# fmt: off
_OUT = (
    "num_classes", "n_classes", "nclasses", "nclass", "n_class", "num_class", "classes", "nb_classes", "num_cls",
    "n_cls", "num_labels", "n_labels", "num_categories", "n_categories", "class_num", "class_count", "nc",
    "out_features", "num_outputs", "n_outputs", "output_dim", "out_dim", "output_size", "n_out", "nout", "num_out",
    "out_channels", "out_chans", "vocab", "vocab_size", "n_vocab", "num_tokens", "n_tokens", "ntoken",
)
_IN = (
    "in_channels", "in_chans", "in_ch", "input_channels", "n_channels", "num_channels", "channels", "chans",
    "image_channels", "img_channels", "in_features", "input_dim", "in_dim", "input_size", "n_inputs", "nin",
    "num_features", "n_features",
)
# fmt: on
SIZES = {**dict.fromkeys(_OUT, 10), **dict.fromkeys(_IN, 3)}


def open_sizes(found: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Argument -> its default (None without one), of the sizes above that a call would leave to the factory."""
    import inspect

    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return {}
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in arguments]
    defaults = {p.name: None if p.default is p.empty else p.default for p in named if p.name in SIZES}
    return {
        name: default
        for name, default in defaults.items()
        if type(default) is int or next(p for p in named if p.name == name).default is inspect.Parameter.empty
    }


def usual_sizes(found: Any, arguments: dict[str, Any]) -> dict[str, int]:
    """A usual number for each size that the factory needs and has no default for."""
    return {name: SIZES[name] for name, default in open_sizes(found, arguments).items() if default is None}


def describe_sizes(made: Any, request: dict[str, Any]) -> dict[str, Any]:
    """`describe`, and where the file's shapes are others, what of the model follows which size.

    request: "follow" is the digest of the file's shapes (`digest_of_shapes`), "typed" what the person wrote. "filled":
    sizes without a default, with the number that was taken. "sizes": (name, value, other value, names that follow it
    with their shapes at that).
    """
    import torch

    said = describe(made)
    if "tensors" not in said:
        return said
    typed, arguments = request["typed"], request["arguments"]
    said["filled"] = {name: value for name, value in arguments.items() if name not in typed}
    said["sizes"] = []
    found = factory_of(request)
    if isinstance(found, torch.nn.Module) or digest_of_shapes([t[1] for t in said["tensors"]]) == request["follow"]:
        return said
    shapes = {name: shape for name, shape, *_ in said["tensors"]}
    for name, default in open_sizes(found, typed).items():
        value = arguments[name] if default is None else default
        try:
            with torch.device("meta"):
                other = describe(one_model(found(**{**arguments, name: value + 1})))
        except Exception:  # noqa: BLE001 their code may raise anything, and this was only to see what follows a size
            continue
        moved = {key: shape for key, shape, *_ in other.get("tensors", ())}
        if moved.keys() == shapes.keys():
            said["sizes"].append([name, value, value + 1, [[k, s] for k, s in moved.items() if s != shapes[k]]])
    return said


def digest_of_shapes(shapes: Any) -> str:
    """Equal for the same shapes in any order; one for what has no axis is not counted."""
    import hashlib

    return hashlib.sha256(repr(sorted(tuple(shape) for shape in shapes if shape)).encode()).hexdigest()


def one_model(made: Any) -> Any:
    """The network in a tuple, dict or object that a factory returns beside a loss and an optimizer: the one module with
    weights, where there is only one; else what was returned."""
    from torch import nn

    if isinstance(made, (nn.Module, str, int, float, type(None))):
        return made
    values = made if isinstance(made, (tuple, list)) else made.values() if isinstance(made, dict) else None
    if values is None:
        values = vars(made).values() if hasattr(made, "__dict__") else ()
    found = [value for value in values if isinstance(value, nn.Module)]
    with_weights = [value for value in found if next(value.parameters(), None) is not None]
    chosen = {id(value): value for value in with_weights or found}
    if len(chosen) > 1:
        kinds = ", ".join(type(value).__name__ for value in chosen.values())
        return {"error": "it returned several networks (" + kinds + "); write a factory that returns one of them"}
    return next(iter(chosen.values())) if chosen else made


def describe(made: Any) -> dict[str, Any]:
    """Names, shapes, element types and buffer flags, in the state dict's order."""
    import torch
    from torch import nn

    if isinstance(made, dict) and set(made) <= {"error", "names"} and "error" in made:
        return made
    state: Any
    if isinstance(made, nn.Module):
        kind, state = type(made).__name__, made.state_dict(keep_vars=True)
        if not isinstance(state, dict):
            return {"error": f"its {kind}.state_dict() returned a {type(state).__name__}"}
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
        described = [str(key), [int(n) for n in value.shape], str(value.dtype).replace("torch.", ""), buffer]
        tensors.append([*described, held_in(value, str(key)) if buffer else ""])
    return {"kind": kind, "tensors": tensors, "ties": ties_of(state)}


# A buffer that has more numbers is looked at by nobody: 4,096 positions squared.
_MOST_HELD = 1 << 24
_PICTURE = ("pixel_mean", "pixel_std", "image_mean", "image_std", "img_mean", "img_std")


def held_in(value: Any, name: str) -> str:
    """What its own code computed in a buffer or set there, where that is told by its numbers: "computed:" and which
    table (`operations/computed.py`), "constant:" and the numbers of a picture's means or deviations."""
    import torch

    shape = tuple(value.shape)
    if value.is_meta or value.is_complex() or value.layout != torch.strided or not 1 < value.numel() <= _MOST_HELD:
        return ""
    if name.rpartition(".")[2] in _PICTURE and value.numel() <= 16 and value.is_floating_point():
        numbers = [float(number) for number in value.flatten()]
        # Zeros and ones are what stands there until a file is read.
        told = bool(torch.isfinite(value).all()) and not set(numbers) <= {0.0, 1.0}
        return "constant:" + ",".join(map(repr, numbers)) if told else ""
    if len(shape) in (2, 4) and shape[-1] == shape[-2] == max(shape) and value.numel() == shape[-1] ** 2:
        square = value.reshape(shape[-2:]).float()
        ones = torch.ones_like(square)
        if torch.equal(square, ones.tril()):
            return "computed:lower-mask"
        if torch.equal(square, ones.triu(1)):
            return "computed:upper-mask"
        if torch.equal(square, torch.zeros_like(square).masked_fill(ones.triu(1).bool(), float("-inf"))):
            return "computed:infinite-mask"
    count, width = value.numel() // shape[-1], shape[-1]
    if value.is_floating_point() and max(shape[:-1], default=0) == count > 1 and width % 2 == 0:
        step = torch.exp(torch.arange(0, width, 2).double() * (-9.210340371976184 / width))
        angle = torch.arange(count).double()[:, None] * step
        made = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
        # The angle is a product of two rounded numbers.
        if bool(((value.reshape(count, width).double() - made).abs() <= 1e-5 + count * 2.0**-21).all()):
            return "computed:sinusoid"
    return ""


def ties_of(state: Any) -> list[list[str]]:
    """Names of one parameter or buffer object: what is loaded under the last of them stands for all."""
    import torch

    objects: dict[int, list[str]] = {}
    for key, value in state.items():
        if isinstance(value, torch.Tensor):
            objects.setdefault(id(value), []).append(str(key))
    return [names for names in objects.values() if len(names) > 1]


def attempt(made: Any, trial: dict[str, Any]) -> dict[str, Any]:
    """Load a state dict strictly, say what the model holds then, and run inputs through it.

    trial: the files "state", "reference" (or None), "inputs", "outputs", and torch's "versions" of the state dict.
    """
    import hashlib

    import torch
    from safetensors.torch import load_file, save_file

    if not isinstance(made, torch.nn.Module):
        return made if isinstance(made, dict) and set(made) <= {"error", "names"} else {"kind": ""}
    state = OrderedDict(load_file(trial["state"]))
    if trial["versions"]:
        metadata = OrderedDict((path, {"version": version}) for path, version in trial["versions"])
        state._metadata = metadata  # type: ignore[attr-defined]
    try:
        made.load_state_dict(state, strict=True)
    except RuntimeError as error:
        return {"kind": type(made).__name__, "strict": str(error).splitlines()[-1].strip()}
    held = {}
    for name, tensor in made.state_dict().items():
        if isinstance(tensor, torch.Tensor):
            flat = tensor.detach().cpu().contiguous().reshape(-1)
            raw = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
            held[name] = [str(tensor.dtype).replace("torch.", ""), hashlib.sha256(raw).hexdigest()]
    outputs: dict[str, Any] = {}
    failed: dict[str, str] = {}
    made.eval()

    def run(label: str, given: Any) -> None:
        try:
            with torch.inference_mode():
                answer = made(given)
        except _FAILURES as error:
            failed[label] = (type(error).__name__ + ": " + str(error)).splitlines()[0][:400]
            return
        if isinstance(answer, dict):
            answer = answer.get("out")
        if isinstance(answer, torch.Tensor):
            outputs[label] = answer.detach().cpu().contiguous().clone()
        else:
            failed[label] = "the model does not answer with one tensor"

    inputs = load_file(trial["inputs"])
    for label, given in inputs.items():
        run(label, given)
    if trial["reference"]:
        made.load_state_dict(load_file(trial["reference"]), strict=True)
        run("reference", inputs["noise"])
    save_file(outputs, trial["outputs"])
    return {"kind": type(made).__name__, "strict": "", "held": held, "failed": failed}


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
