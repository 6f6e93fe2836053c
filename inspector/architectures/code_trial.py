"""Load a state dict into the model that a person's own code builds, and run it: in a process of its own.

As `user_code.py`: whoever calls has asked the person first, and the process contains accidents, not malice. Tensors go
there and back as safetensors, which hold numbers and nothing that runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.architectures.user_code import SECONDS, parse_factory, run_factory
from inspector.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

_MOST_OUTPUT = 1 << 30  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of it.

    kind: the model's class, "" when the factory returns no module and nothing was tried. strict: what load_state_dict
    said, "" when it took everything. held: element type and sha256 of each tensor that the model held afterwards.
    outputs: the answer to each input, and under "reference" the one to "noise" with the reference's tensors.
    failed: why an input has no answer.
    """

    kind: str
    strict: str
    held: Mapping[str, tuple[str, str]]
    outputs: Mapping[str, Tensor]
    failed: Mapping[str, str]


def try_code(
    text: str,
    state: Mapping[str, Tensor],
    *,
    inputs: Mapping[str, Tensor],
    reference: Mapping[str, Tensor] | None = None,
    folder: Path | None = None,
    seconds: float = SECONDS,
    memory_nbytes: int | None = None,
) -> Trial:
    """Build, load strictly, run each of the inputs in evaluation. Runs the person's code.

    reference: another complete state dict, with which the input "noise" is run once more.
    Raises ModelError when the code raises, hangs, or answers with what is no answer.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file

    factory = parse_factory(text)
    with tempfile.TemporaryDirectory(prefix="inspector-code-") as name:
        private = Path(name)
        save_file(_apart(state), private / "state")
        save_file(_apart(inputs), private / "inputs")
        if reference is not None:
            save_file(_apart(reference), private / "reference")
        metadata: Mapping[str, Mapping[str, object]] = getattr(state, "_metadata", {})
        trial = {
            "state": str(private / "state"),
            "inputs": str(private / "inputs"),
            "reference": str(private / "reference") if reference is not None and "noise" in inputs else None,
            "outputs": str(private / "outputs"),
            "versions": [[path, entry["version"]] for path, entry in metadata.items() if "version" in entry],
        }
        answer = run_factory(
            factory, folder or Path.cwd(), private, seconds=seconds, memory_nbytes=memory_nbytes, trial=trial
        )
        outputs: Mapping[str, Tensor] = {}
        made = private / "outputs"
        if made.exists():
            if made.stat().st_size > _MOST_OUTPUT:
                raise ModelError(f"{factory.text} answers with {made.stat().st_size:,} bytes, too many to compare.")
            try:
                outputs = load_file(made)
            except (SafetensorError, OSError) as error:
                raise ModelError(f"{factory.text} left outputs that cannot be read.") from error
    kind, strict = answer.get("kind"), answer.get("strict", "")
    failed, held = _mapping(answer.get("failed")), _mapping(answer.get("held"))
    if not isinstance(kind, str) or not isinstance(strict, str):
        raise ModelError(f"{factory.text} left an answer that is no description.")
    return Trial(
        kind=kind,
        strict=strict,
        held={str(n): (str(v[0]), str(v[1])) for n, v in held.items() if isinstance(v, list) and len(v) == 2},
        outputs=outputs,
        failed={str(label): str(why) for label, why in failed.items()},
    )


def _mapping(value: object) -> Mapping[object, object]:
    return value if isinstance(value, dict) else {}


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous, and none sharing memory with another, as the format demands."""
    seen: set[int] = set()
    made = {}
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        whole = tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
        made[name] = tensor.detach() if whole and place not in seen else tensor.detach().clone().contiguous()
        seen.add(place)
    return made
