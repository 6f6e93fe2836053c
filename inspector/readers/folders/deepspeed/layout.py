"""Which files of a DeepSpeed folder are what, by their names alone. Source: deepspeed/runtime/engine.py and
deepspeed/checkpoint/constants.py (0.19)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from inspector.readers.folder import Folder

_MODEL = re.compile(r"(?:zero_pp_rank_(\d{1,6})_)?mp_rank_(\d{1,6})_model_states\.pt")
_OPTIM = re.compile(r"(?:bf16_|fp16_)?zero_pp_rank_(\d{1,6})_mp_rank_(\d{1,6})_optim_states\.pt")
_UNIVERSAL = re.compile(r"zero/(.+)/(fp32|exp_avg|exp_avg_sq|step)\.pt")
_OTHER = re.compile(r"(layer_.*|expert_.*|expp_rank_.*)_states\.pt|layer_.*model_states\.pt")
_MOST_TAG_NBYTES = 4096


@dataclass(slots=True)
class Save:
    """The files of one tag. inside: its folder, "" or "name/".

    models, optims: (data-parallel rank, tensor-parallel rank) -> path. universal: (parameter, state) -> path.
    others: pipeline layers and experts, which are not merged.
    """

    inside: str
    models: dict[tuple[int, int], str] = field(default_factory=dict)
    optims: dict[tuple[int, int], str] = field(default_factory=dict)
    universal: dict[tuple[str, str], str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)

    @property
    def tag(self) -> str:
        """Its name as `latest` would have it."""
        return self.inside.rstrip("/")

    @property
    def is_zero(self) -> bool:
        """Whether there is anything of ZeRO in it."""
        return bool(
            self.optims or self.universal or any(path.rpartition("/")[2][0] == "z" for path in self.models.values())
        )


@dataclass(slots=True)
class Layout:
    """All saves of a folder by tag, and what its `latest` says ("" without one)."""

    saves: dict[str, Save]
    latest: str = ""
    latest_file: str = ""

    def chosen(self) -> Save:
        """The one that is shown: what `latest` names, else the last in natural order."""
        named = self.saves.get(self.latest)
        return named if named is not None else self.saves[max(self.saves, key=_natural)]


def _natural(text: str) -> list[tuple[int, str]]:
    """ "global_step9" before "global_step10"."""
    return [(int(part), "") if part.isdigit() and len(part) < 18 else (-1, part) for part in re.split(r"(\d+)", text)]


def find_saves(folder: Folder) -> Layout | None:
    """The ZeRO saves in a folder: itself one, or one per folder in it. None when there is none."""
    saves: dict[str, Save] = {}

    def save(inside: str) -> Save:
        return saves.setdefault(inside.rstrip("/"), Save(inside))

    for path in folder.files():
        at = path.find("zero/")
        universal = _UNIVERSAL.fullmatch(path[at:]) if at >= 0 and path[:at].count("/") <= 1 else None
        if universal:
            save(path[:at]).universal[(universal[1], universal[2])] = path
            continue
        inside, _, base = path.rpartition("/")
        if "/" in inside:
            continue
        inside = f"{inside}/" if inside else ""
        if match := _MODEL.fullmatch(base):
            save(inside).models.setdefault((int(match[1] or 0), int(match[2])), path)
        elif match := _OPTIM.fullmatch(base):
            save(inside).optims.setdefault((int(match[1]), int(match[2])), path)
        elif _OTHER.fullmatch(base):
            save(inside).others.append(path)
    found = {tag: s for tag, s in saves.items() if s.is_zero}
    if not found:
        return None
    layout = Layout(found)
    for name in ("latest", "latest_universal"):
        size = folder.size_of(name)
        if size is not None and 0 < size <= _MOST_TAG_NBYTES and not layout.latest_file:
            source = folder.open(name)
            layout.latest = source.read(0, source.size).decode("utf-8", "replace").strip()
            layout.latest_file = name
            source.close()
    return layout
