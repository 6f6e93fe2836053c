"""LoRA and its kin: an adapter alone is no model; beside its base it is lost where only the base is taken."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from inspector.checkpoint.adapter_names import adapted_layer, is_adapter_tensor, is_beside_adapter
from inspector.checkpoint.types import TensorInfo
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.keys.checks.entry import MOST_SUBJECTS, Context, refusing
from inspector.units import counted

ADAPTER_INSIDE = FindingKind("adapter-inside", Severity.WARNING, "An adapter beside its base model")


def parts(context: Context) -> list[TensorInfo]:
    """Tensors of adapters that the target has no place for."""
    if not any(map(is_adapter_tensor, context.forms)):
        return []
    return [t for t in context.state.tensors if is_adapter_tensor(t.name) and t.name not in context.used]


def _alone(context: Context) -> str:
    """An adapter without its base, with its rank and the layers it is for."""
    adapter = parts(context)
    if not adapter:
        return ""
    rest = [t for t in context.state.tensors if not is_adapter_tensor(t.name) and not is_beside_adapter(t.name)]
    if rest or any(map(is_adapter_tensor, context.places)):
        return ""
    modules = list(dict.fromkeys(adapted_layer(t.name) for t in adapter))
    ranks = sorted({min(t.shape[:2]) for t in adapter if len(t.shape) >= 2})
    what = f"of rank {ranks[0]}" if len(ranks) == 1 else f"of ranks {ranks[0]} to {ranks[-1]}" if ranks else ""
    ends = Counter(re.split(r"[._](?=[a-z])", module)[-1] for module in modules)
    kinds = ", ".join(name for name, _ in ends.most_common(4))
    return (
        f"This is an adapter {what} for {counted(len(modules), 'layer')} ({kinds}), not a model: none of its "
        f"{counted(len(context.state.tensors), 'tensor')} is a weight of {context.target.label}. Load the base model "
        "first, then the adapter with the library that wrote it, or merge it into its base."
    )


def _beside(context: Context) -> Iterator[Finding]:
    adapter = parts(context)
    if not adapter or len(adapter) == len(context.state.tensors):
        return
    names = sorted({found for t in adapter if (found := _adapter_name(t.name))})
    called = f" called {', '.join(names[:3])}" if names else ""
    yield ADAPTER_INSIDE.found(
        f"{counted(len(adapter), 'tensor')} are an adapter{called} beside its base model: without them the repaired "
        "model is the base as it was before the fine-tuning.",
        subjects=[t.name for t in adapter[:MOST_SUBJECTS]],
        remedy="Merge the adapter into its base first (merge_and_unload in PEFT), or leave it out knowingly.",
    )


def _adapter_name(name: str) -> str:
    found = re.search(r"\.lora_(?:A|B|embedding_A|embedding_B)\.([^.]+)(?:\.weight)?$", name)
    return found[1] if found and found[1] != "weight" else ""


REFUSALS = (refusing(_alone),)
CHECKS = (Check(kinds=(ADAPTER_INSIDE,), find=_beside),)
