"""Python lines for the reader's own loading code. They check themselves: a name too many or too few raises.

`state` is what was passed to load_state_dict, `model` the reader's model.
"""

from __future__ import annotations

from collections.abc import Sequence

_MOST_LISTED = 40


def take_out(container: str) -> str:
    """The weights out of a training checkpoint."""
    return (
        'checkpoint = torch.load(path, map_location="cpu", weights_only=True)\n'
        f"model.load_state_dict(checkpoint[{container!r}])\n"
    )


def look_inside() -> str:
    """The keys of a training checkpoint, to choose from."""
    return (
        'checkpoint = torch.load(path, map_location="cpu", weights_only=True)\n'
        "print(list(checkpoint))  # the weights lie under one of these\n"
    )


def uncut() -> str:
    """Take a prefix off where it is, and nothing elsewhere."""
    return (
        'state = {key.removeprefix("module."): tensor for key, tensor in state.items()}  # not key[7:]\n'
        "model.load_state_dict(state, strict=True)\n"
    )


def constants_out(lasts: Sequence[str]) -> str:
    """Load what is there and check that nothing but constants of these names is left."""
    return (
        f"constants = {tuple(lasts)!r}\n"
        "left = model.load_state_dict(state, strict=False)\n"
        "assert all(key.endswith(constants) for key in (*left.missing_keys, *left.unexpected_keys)), left\n"
    )


def renamed(lines: Sequence[str], *, counters: Sequence[str] = ()) -> str:
    """Rename what does not fit yet. lines: the body of `rename`, which assigns to `key`.

    counters: endings of names that hold no weights and are left out where the model does not have them.
    """
    left_out = (
        f"counters = {tuple(counters)!r}  # no weights\n"
        "renamed = {key: tensor for key, tensor in renamed.items() if key in wanted or not key.endswith(counters)}\n"
        if counters
        else ""
    )
    body = "".join(f"    {line}\n" for line in lines)
    imports = "import re\n\n\n" if any("re.sub" in line for line in lines) else ""
    return (
        f"{imports}def rename(key):\n{body}    return key\n\n\n"
        "wanted = set(model.state_dict())\n"
        "renamed = {key if key in wanted else rename(key): tensor for key, tensor in state.items()}\n"
        "assert len(renamed) == len(state)  # no two names became one\n"
        f"{left_out}"
        "model.load_state_dict(renamed, strict=True)\n"
    )


def unpruned() -> str:
    """Weights times their masks, under the weights' own names."""
    return (
        'for key in [key for key in state if key.endswith("_orig") and f"{key[:-5]}_mask" in state]:\n'
        '    state[key[:-5]] = state.pop(key) * state.pop(f"{key[:-5]}_mask")\n'
        "model.load_state_dict(state, strict=True)\n"
    )


def into_part(path: str) -> str:
    """Load into the module that a wrapper holds."""
    return f"model.get_submodule({path!r}).load_state_dict(state, strict=True)\n"


def heads_out(names: Sequence[str]) -> str:
    """Load everything but the head, and check that nothing else is left out."""
    return (
        f"head = {as_set(names)}\n"
        "state = {key: tensor for key, tensor in state.items() if key not in head}\n"
        "left = model.load_state_dict(state, strict=False)\n"
        "assert set(left.missing_keys) == head and not left.unexpected_keys, left\n"
        "# The head is untrained now: train it before you use the model.\n"
    )


def leave_out() -> str:
    """Without profilers' counters, and with batch counters where they are missing."""
    return (
        "wanted = model.state_dict()\n"
        'counters = ("num_batches_tracked", "total_ops", "total_params")\n'
        "state = {key: tensor for key, tensor in state.items() if key in wanted or not key.endswith(counters)}\n"
        "for key in wanted:\n"
        '    if key.endswith("num_batches_tracked"):\n'
        "        state.setdefault(key, torch.tensor(0))\n"
        "model.load_state_dict(state, strict=True)\n"
    )


def only_known(missing: Sequence[str]) -> str:
    """Load what is there and check that exactly these names stay as they are; "" when they are too many to list."""
    if len(missing) > _MOST_LISTED:
        return ""
    return (
        f"absent = {as_set(missing)}\n"
        "left = model.load_state_dict(state, strict=False)\n"
        "assert set(left.missing_keys) == absent and not left.unexpected_keys, left\n"
        "# What is absent keeps its initial values: train it before you use the model.\n"
    )


def compare_shapes(missing: Sequence[str], unexpected: Sequence[str]) -> str:
    """Print the shapes of both sides."""
    return (
        f"for key in {list(unexpected)!r}:\n"
        '    print("file ", key, tuple(state[key].shape))\n'
        f"for key in {list(missing)!r}:\n"
        '    print("model", key, tuple(model.state_dict()[key].shape))\n'
    )


def as_set(names: Sequence[str]) -> str:
    """The names as a Python literal."""
    if len(names) > 3:
        return "{\n" + "".join(f"    {name!r},\n" for name in names) + "}"
    return "{" + ", ".join(repr(name) for name in names) + "}"
