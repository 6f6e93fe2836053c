"""Which files of a repository are checkpoints, and which one is meant: by names alone, since a look is a request.

safetensors comes before torch's own format, shards count as one through their index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from inspector.readers.folders.sharded.layout import families, shard_name
from inspector.readers.not_checkpoints.naming import WEIGHT_SUFFIXES
from inspector.readers.single_file import ASIDE_NAME, OWN_NAME, without_twins
from inspector.units import counted, human_bytes

_INDEX = ".index.json"
# As models are called on the hub: archives and tokenizers (spiece.model) are not among them.
_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".th", ".gguf", ".onnx", ".npz", ".pt2", ".ptl", ".pkl")

# A look would be a request for each. Of ".model", most are tokenizers.
_MAY_NAME_CODE = (
    *(end for end in WEIGHT_SUFFIXES if end not in (".safetensors", ".gguf", ".onnx", ".npy", ".model")),
    ".joblib",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One checkpoint of a repository. path: what is opened for it: its file, or the index of its shards. stands_for:
    the file that it would be in one piece. files: all of it. has_index: False for shards that only their names join."""

    path: str
    stands_for: str
    files: tuple[str, ...]
    nbytes: int
    has_index: bool = True

    @property
    def says(self) -> str:
        """Its name and size."""
        many = len(self.files) - self.path.endswith(_INDEX)
        shards = f"{counted(many, 'shard')}, " if many > 1 else ""
        return f"{self.stands_for}, {shards}{human_bytes(self.nbytes)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """candidates: all there are, what trainers keep beside the weights last. best: the one that is meant, None where
    several could be. others: what was passed over for it, and why."""

    candidates: tuple[Candidate, ...]
    best: Candidate | None
    others: tuple[str, ...] = ()


def choose(files: Mapping[str, int], under: str = "") -> Choice:
    """Among the files of a repository, or of a folder in it."""
    inside = {path: n for path, n in files.items() if not under or path.startswith(f"{under}/")}
    found = [*_sharded(inside), *_single(inside)]
    found.sort(key=lambda c: (_is_aside(c), c.path.count("/"), c.stands_for))
    by_name = {candidate.stands_for: candidate for candidate in reversed(found)}
    main = [name for name in by_name if not _is_aside(by_name[name])]
    main.sort(key=lambda name: (name.count("/"), name))
    kept, told = without_twins(main or list(by_name))
    depth = under.count("/") + 1 if under else 0
    own = [name for name in kept if name.count("/") == depth and OWN_NAME.fullmatch(name.rpartition("/")[2])]
    chosen = kept[0] if len(kept) == 1 else own[0] if len(own) == 1 else None
    others = (*(name for name in kept if name != chosen), *told)
    return Choice(
        candidates=tuple(found), best=None if chosen is None else by_name[chosen], others=others if chosen else ()
    )


def may_name_code(files: Iterable[str], best: Candidate, read: Iterable[str]) -> tuple[str, ...]:
    """Which files in the folder of what is opened, and below it, may name code by their names. read: what was."""
    above, known = _above(best.path), {*best.files, *read}
    beside = (path for path in files if path.startswith(above) and path not in known)
    return tuple(path for path in beside if path.lower().endswith(_MAY_NAME_CODE))


def _is_aside(candidate: Candidate) -> bool:
    return ASIDE_NAME.fullmatch(candidate.stands_for.rpartition("/")[2]) is not None


def _above(path: str) -> str:
    return path[: path.rfind("/") + 1]


def _single(files: Mapping[str, int]) -> list[Candidate]:
    return [
        Candidate(path=path, stands_for=path, files=(path,), nbytes=nbytes)
        for path, nbytes in files.items()
        if path.lower().endswith(_SUFFIXES) and nbytes and not _is_shard(path)
    ]


def _is_shard(path: str) -> bool:
    name = shard_name(path.rpartition("/")[2])
    return name is not None and name.count > 1


def _sharded(files: Mapping[str, int]) -> list[Candidate]:
    found: list[Candidate] = []
    folders: dict[str, list[str]] = {}
    for path in files:
        if _is_shard(path):
            folders.setdefault(_above(path), []).append(path.rpartition("/")[2])
    for folder, names in folders.items():
        for (stem, _, ending), members in families(names).items():
            shards = tuple(f"{folder}{name}" for _, name in sorted(members.items()))
            whole = f"{folder}{stem}{ending}"
            index = whole + _INDEX
            listed = (index, *shards) if index in files else shards
            found.append(
                Candidate(
                    path=listed[0],
                    stands_for=whole,
                    files=listed,
                    nbytes=sum(files[path] for path in shards),
                    has_index=index in files,
                )
            )
    return found
