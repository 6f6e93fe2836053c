"""How the file is opened: on which device, and whether it may run code."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from inspector.checkpoint.types import GlobalVerdict
from inspector.error_messages.loading_code.entry import Code, Fault, Found, in_place, written
from inspector.error_messages.loading_code.events import Read
from inspector.readers.unpickle.globals.verdicts import weights_only_allows
from inspector.units import counted

_FETCHERS = frozenset(
    {
        *("hf_hub_download", "snapshot_download", "urlretrieve", "urlopen", "download_url_to_file"),
        *("wget", "gdown", "requests"),
    }
)  # fmt: skip


def _device(code: Code) -> Iterator[Found]:
    checkpoint = code.checkpoint
    for scope in code.scopes:
        for read in scope.reads:
            if not read.is_torch or read.option("map_location") is not None or len(read.node.args) > 1:
                continue
            if any(one.arg is None for one in read.node.keywords):
                continue
            if checkpoint is not None:
                on = Counter(
                    t.device for t in checkpoint.tensors if t.device and t.device.startswith(("cuda", "mps", "xpu"))
                )
                if not on:
                    continue
                where = ", ".join(f"{n:,} on {device}" for device, n in on.most_common(3))
                says = f"There is no map_location, and the file's tensors were saved on a device ({where})."
            elif code.save_of(read) is None and _foresees_cpu(code):
                says = "There is no map_location: if the file was saved on a GPU, this fails where there is none."
            else:
                continue
            yield Found(
                node=read.node,
                says=says,
                why="torch.load puts each tensor back on the device it was saved on; where there is none that is an "
                "error, and elsewhere the memory of that device fills.",
                steps=("Load to the CPU, or to the device that the model is on.",),
                patch=in_place(read.statement, read.node, _with(read, "map_location", "'cpu'")),
                if_so=checkpoint is None,
            )


def _foresees_cpu(code: Code) -> bool:
    """Whether the same script is meant to run without a GPU too."""
    asks = any("is_available" in scope_did.method for scope in code.scopes for scope_did in scope.did)
    return (asks or "cuda" not in code.names) and "cpu" in code.words


def _trust(code: Code) -> Iterator[Found]:
    checkpoint = code.checkpoint
    for scope in code.scopes:
        for read in scope.reads:
            only = read.option("weights_only")
            if not (read.is_torch and isinstance(only, ast.Constant) and only.value is False):
                continue
            if checkpoint is not None:
                bad = [use.name for use in checkpoint.globals if use.verdict is GlobalVerdict.DANGEROUS]
                unknown = [use.name for use in checkpoint.globals if not _allowed(use.name)]
                if bad:
                    says = f"weights_only=False runs what this file names: {', '.join(bad[:3])}."
                elif not unknown:
                    says = "weights_only=False lets a file run code, and this one needs none of it."
                else:
                    says = (
                        f"weights_only=False runs what this file names beside torch's own: "
                        f"{counted(len(unknown), 'global')}, {', '.join(unknown[:3])}."
                    )
                if_so = bool(unknown) and not bad
            elif code.save_of(read) is not None:
                continue
            else:
                fetched = code.names & _FETCHERS or any(word.startswith(("http://", "https://")) for word in code.words)
                says = (
                    "weights_only=False lets a file that comes from the network run any code."
                    if fetched
                    else "weights_only=False lets the file run any code: right only for files of your own."
                )
                if_so = not fetched
            yield Found(
                node=read.node,
                says=says,
                why="A pickle is a program. With weights_only=True torch reads tensors and plain values alone.",
                steps=("Open it with weights_only=True; open the file here to see what it names.",),
                patch=in_place(read.statement, read.node, _with(read, "weights_only", "True")),
                if_so=if_so,
            )


def _allowed(name: str) -> bool:
    module, _, last = name.removeprefix("builtins.").rpartition(".")
    return weights_only_allows(module, last)


def _with(read: Read, option: str, value: str) -> str:
    """The call with this option set."""
    arguments = [*map(written, read.node.args)]
    arguments += [f"{k.arg}={written(k.value)}" for k in read.node.keywords if k.arg != option]
    return f"{written(read.node.func)}({', '.join([*arguments, f'{option}={value}'])})"


FAULTS = (Fault(kind="no-map-location", find=_device), Fault(kind="weights-only-off", find=_trust))
