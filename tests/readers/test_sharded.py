"""Shards with their index: every tensor as safetensors and torch read it, every disagreement with its number."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from inspector.checkpoint.data import read_array
from inspector.checkpoint.types import Checkpoint
from inspector.errors import CorruptFile, ExportError, LimitExceeded, ReadError, UnknownFormat
from inspector.exports.export import check_destination
from inspector.findings import Finding, Severity
from inspector.limits import Limits
from inspector.readers import claims_folder, detect_format, open_checkpoint
from inspector.readers.folder import DirectoryFolder
from inspector.readers.folders.sharded.layout import families, gaps, shard_name
from inspector.readers.folders.sharded.reader import READER

State = dict[str, torch.Tensor]


def shards_of(count: int = 3) -> list[State]:
    """Shard n has layers.n.weight (4 x 5, 80 bytes) and layers.n.bias (5 halves, 10 bytes)."""
    torch.manual_seed(0)
    return [{f"layers.{n}.weight": torch.randn(4, 5), f"layers.{n}.bias": torch.randn(5).half()} for n in range(count)]


def write(folder: Path, shards: list[State], *, ending: str = "safetensors", index: bool = True) -> dict[str, object]:
    """As huggingface_hub lays it out. Returns the index that was written."""
    stem = "model" if ending == "safetensors" else "pytorch_model"
    weight_map: dict[str, str] = {}
    total = 0
    for number, state in enumerate(shards, 1):
        name = f"{stem}-{number:05d}-of-{len(shards):05d}.{ending}"
        if ending == "safetensors":
            save_file(state, folder / name, metadata={"format": "pt"})
        else:
            torch.save(state, folder / name)
        weight_map.update(dict.fromkeys(state, name))
        total += sum(t.numel() * t.element_size() for t in state.values())
    made: dict[str, object] = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    if index:
        (folder / f"{stem}.{ending}.index.json").write_text(json.dumps(made, indent=2))
    return made


def rewrite(folder: Path, change: Callable[[dict[str, str], dict[str, object]], None]) -> None:
    place = next(folder.glob("*.index.json"))
    index = json.loads(place.read_text())
    change(index["weight_map"], index["metadata"])
    place.write_text(json.dumps(index))


def found(checkpoint: Checkpoint, ident: str) -> Finding:
    return next(f for f in checkpoint.findings if f.id == ident)


def idents(checkpoint: Checkpoint) -> list[str]:
    return [f.id for f in checkpoint.findings]


def same(checkpoint: Checkpoint, state: State) -> None:
    assert checkpoint.weights is not None
    infos = {t.name: t for t in checkpoint.weights.tensors}
    assert set(infos) == set(state)
    for name, tensor in state.items():
        assert infos[name].path == (name,)
        np.testing.assert_array_equal(read_array(checkpoint, infos[name]), tensor.numpy())


def merged(shards: list[State]) -> State:
    return {name: tensor for shard in shards for name, tensor in shard.items()}


@pytest.mark.parametrize("ending", ["safetensors", "bin"])
def test_a_whole_checkpoint_opens_as_one_without_findings(ending: str, tmp_path: Path) -> None:
    write(tmp_path, shards_of(), ending=ending)
    checkpoint = open_checkpoint(tmp_path)
    assert claims_folder(tmp_path) == checkpoint.format == "sharded"
    assert checkpoint.findings == ()
    assert len(checkpoint.state_dicts) == 1
    assert checkpoint.state_dicts[0].path == ()
    assert checkpoint.state_dicts[0].ordered is (ending == "bin")
    expected: State = {}
    for path in sorted(tmp_path.glob(f"*.{ending}")):
        if ending == "bin":
            expected.update(torch.load(path, weights_only=True))
        else:
            with safe_open(path, "pt") as file:
                expected.update({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    same(checkpoint, expected)
    assert [t.name for t in checkpoint.tensors if t.name.endswith("weight")] == [f"layers.{n}.weight" for n in range(3)]
    assert {p.name for p in checkpoint.parts} == {p.name for p in tmp_path.iterdir()}
    assert checkpoint.origin.nbytes == sum(p.stat().st_size for p in tmp_path.glob(f"*.{ending}"))
    same(pickle.loads(pickle.dumps(checkpoint)), expected)
    assert [label for label, value in checkpoint.root.children if value.name] == [t.name for t in checkpoint.tensors]


def test_the_index_file_stands_for_its_folder(tmp_path: Path) -> None:
    write(tmp_path, shards_of())
    index = tmp_path / "model.safetensors.index.json"
    claimed = detect_format(index)
    assert claimed is not None
    assert claimed[0].id == "shard-index"
    same(open_checkpoint(index), merged(shards_of()))
    # Under any name, as long as it lies there.
    (tmp_path / "renamed.json").write_bytes(index.read_bytes())
    same(open_checkpoint(tmp_path / "renamed.json"), merged(shards_of()))


def test_an_index_that_came_alone_says_what_to_do(tmp_path: Path) -> None:
    write(tmp_path, shards_of())
    data = (tmp_path / "model.safetensors.index.json").read_bytes()
    with pytest.raises(
        UnknownFormat, match=r"index of 6 tensors in 3 files \(model-00001-of-00003\.safetensors"
    ) as caught:
        open_checkpoint(data, name="model.safetensors.index.json")
    assert "into one zip or tar" in caught.value.hint


def test_one_shard_says_which_it_is(tmp_path: Path) -> None:
    write(tmp_path, shards_of(5))
    path = tmp_path / "model-00002-of-00005.safetensors"
    checkpoint = open_checkpoint(path)
    one = found(checkpoint, "one-shard")
    assert one.says.startswith("By its name this is shard 2 of 5 of model.safetensors: 2 tensors")
    assert "Open model.safetensors.index.json beside it" in one.remedy
    alone = found(open_checkpoint(path.read_bytes(), name=path.name), "one-shard")
    assert "Open the folder with all its shards" in alone.remedy
    path.rename(tmp_path / "model.safetensors")
    assert "one-shard" not in idents(open_checkpoint(tmp_path / "model.safetensors"))


def test_a_missing_shard_takes_its_tensors_and_no_others(tmp_path: Path) -> None:
    write(tmp_path, shards_of(5))
    (tmp_path / "model-00002-of-00005.safetensors").unlink()
    checkpoint = open_checkpoint(tmp_path)
    shards = shards_of(5)
    same(checkpoint, merged([s for n, s in enumerate(shards) if n != 1]))
    missing = found(checkpoint, "missing-shard")
    assert missing.severity is Severity.ERROR
    assert missing.says.startswith("1 shard is missing: model-00002-of-00005.safetensors, and with it 2 of 10 tensors")
    assert set(missing.subjects) == set(shards[1])
    assert found(checkpoint, "shard-gap").evidence == (("announced", 5), ("missing", 1))
    assert sorted(idents(checkpoint)) == ["missing-shard", "shard-gap"]
    part = next(p for p in checkpoint.parts if p.name == "model-00002-of-00005.safetensors")
    assert part.says == "missing, 2 tensors lost"


def test_a_broken_shard_takes_its_tensors_and_no_others(tmp_path: Path) -> None:
    write(tmp_path, shards_of())
    (tmp_path / "model-00003-of-00003.safetensors").write_bytes(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 4683057\n"
    )
    checkpoint = open_checkpoint(tmp_path)
    same(checkpoint, merged(shards_of()[:2]))
    broken = found(checkpoint, "unreadable-shard")
    assert "Git LFS pointer" in broken.says
    assert "2 of 6 tensors" in broken.says


def test_a_cut_shard_keeps_its_whole_tensors(tmp_path: Path) -> None:
    write(tmp_path, shards_of())
    path = tmp_path / "model-00001-of-00003.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    checkpoint = open_checkpoint(tmp_path)
    assert found(checkpoint, "cut-short").severity is Severity.ERROR
    readable = 0
    for info in checkpoint.tensors:
        try:
            read_array(checkpoint, info)
            readable += 1
        except CorruptFile:
            pass
    assert (readable, len(checkpoint.tensors)) == (5, 6)


def test_a_tensor_in_the_wrong_shard_is_found_and_read(tmp_path: Path) -> None:
    write(tmp_path, shards_of())

    def swap(weight_map: dict[str, str], _: dict[str, object]) -> None:
        weight_map["layers.0.bias"] = "model-00003-of-00003.safetensors"

    rewrite(tmp_path, swap)
    checkpoint = open_checkpoint(tmp_path)
    assert idents(checkpoint) == ["wrong-shard"]
    wrong = found(checkpoint, "wrong-shard")
    assert "layers.0.bias is in model-00001-of-00003.safetensors, the index says model-00003" in wrong.says
    assert wrong.subjects == ("layers.0.bias",)
    same(checkpoint, merged(shards_of()))


def test_keys_on_one_side_only(tmp_path: Path) -> None:
    write(tmp_path, shards_of())

    def change(weight_map: dict[str, str], _: dict[str, object]) -> None:
        del weight_map["layers.1.bias"]
        weight_map["lm_head.weight"] = "model-00001-of-00003.safetensors"

    rewrite(tmp_path, change)
    checkpoint = open_checkpoint(tmp_path)
    assert sorted(idents(checkpoint)) == ["not-in-index", "not-in-shards"]
    assert found(checkpoint, "not-in-index").subjects == ("layers.1.bias",)
    assert found(checkpoint, "not-in-shards").subjects == ("lm_head.weight",)
    assert found(checkpoint, "not-in-shards").severity is Severity.ERROR
    same(checkpoint, merged(shards_of()))


def test_a_tensor_in_two_shards_is_the_one_that_the_index_names(tmp_path: Path) -> None:
    first, second = {"w": torch.ones(3), "a": torch.ones(1)}, {"w": torch.full((3,), 2.0), "b": torch.ones(1)}
    write(tmp_path, [first, second])
    checkpoint = open_checkpoint(tmp_path)
    double = found(checkpoint, "duplicate-tensor")
    assert "w in model-00001-of-00002.safetensors, model-00002-of-00002.safetensors" in double.says
    same(checkpoint, {**first, **second})
    assert len(checkpoint.tensors) == 4
    rewrite(tmp_path, lambda weight_map, _: weight_map.update(w="model-00001-of-00002.safetensors"))
    same(open_checkpoint(tmp_path), {**second, **first})


@pytest.mark.parametrize(("told", "says"), [(271, "1 fewer"), (0, "270 more"), (270.0, ""), ("270", ""), (-1, "")])
def test_the_total_size_is_compared_in_bytes(told: object, says: str, tmp_path: Path) -> None:
    write(tmp_path, shards_of())  # 3 x (80 + 10) bytes
    rewrite(tmp_path, lambda _, metadata: metadata.update(total_size=told))
    checkpoint = open_checkpoint(tmp_path)
    assert idents(checkpoint) == (["total-size"] if says else [])
    if says:
        assert f"the tensors in the shards have 270 ({says})" in found(checkpoint, "total-size").says


def test_tied_tensors_may_be_counted_once_or_twice_and_share(tmp_path: Path) -> None:
    shared = torch.randn(4, 5)
    state = {"embed.weight": shared, "head.weight": shared, "b": torch.ones(2)}
    for total in (88, 168):
        write(tmp_path, [state, {"c": torch.ones(0)}], ending="bin")
        rewrite(tmp_path, lambda _, metadata, total=total: metadata.update(total_size=total))
        checkpoint = open_checkpoint(tmp_path)
        assert idents(checkpoint) == ["shared-storage"]
        infos = {t.name: t for t in checkpoint.tensors}
        assert infos["embed.weight"].storage_id == infos["head.weight"].storage_id != infos["b"].storage_id


def test_shards_left_from_an_earlier_saving(tmp_path: Path) -> None:
    write(tmp_path, shards_of(3))
    save_file({"old": torch.ones(1)}, tmp_path / "model-00004-of-00004.safetensors")
    save_file({"other": torch.ones(1)}, tmp_path / "adapter.safetensors")
    checkpoint = open_checkpoint(tmp_path)
    assert idents(checkpoint) == ["stray-shard"]
    assert found(checkpoint, "stray-shard").subjects == ("model-00004-of-00004.safetensors",)
    same(checkpoint, merged(shards_of(3)))


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "C:\\x.safetensors", "a/../../b", "..", ""])
def test_shard_names_that_lead_outside_are_not_followed(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    save_file({"secret": torch.ones(1)}, tmp_path / "secret.safetensors")
    write(folder, shards_of())
    rewrite(folder, lambda weight_map, _: weight_map.update(secret=name))
    checkpoint = open_checkpoint(folder)
    same(checkpoint, merged(shards_of()))
    outside = found(checkpoint, "shard-outside")
    assert outside.severity is Severity.ERROR
    assert "1 of 7 tensors, first secret" in outside.says


def test_a_shard_that_is_something_else_than_its_ending_says(tmp_path: Path) -> None:
    write(tmp_path, shards_of())
    torch.save(shards_of()[1], tmp_path / "model-00002-of-00003.safetensors")
    checkpoint = open_checkpoint(tmp_path)
    assert idents(checkpoint) == ["shard-format"]
    assert "model-00002-of-00003.safetensors is a torch.save zip archive" in found(checkpoint, "shard-format").says
    assert checkpoint.format_says.startswith("sharded mixed checkpoint")
    same(checkpoint, merged(shards_of()))


def test_shards_without_an_index_are_put_together_by_name(tmp_path: Path) -> None:
    write(tmp_path, shards_of(4), index=False)
    (tmp_path / "model-00003-of-00004.safetensors").unlink()
    checkpoint = open_checkpoint(tmp_path)
    assert sorted(idents(checkpoint)) == ["no-index", "shard-gap"]
    assert "counts" not in idents(checkpoint)
    assert "number 3" in found(checkpoint, "shard-gap").says
    shards = shards_of(4)
    same(checkpoint, merged([shards[0], shards[1], shards[3]]))


def test_two_formats_of_one_model_open_as_safetensors(tmp_path: Path) -> None:
    write(tmp_path, shards_of())
    write(tmp_path, shards_of(2), ending="bin")
    checkpoint = open_checkpoint(tmp_path)
    assert checkpoint.format_says == "sharded safetensors checkpoint, 3 files"
    assert checkpoint.findings == ()


def test_a_hostile_shard_is_reported_and_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"

    class Payload:
        def __reduce__(self) -> tuple[object, ...]:
            import os

            return os.system, (f"touch {marker}",)

    write(tmp_path, shards_of(2), ending="bin")
    torch.save({**shards_of(2)[1], "x": Payload()}, tmp_path / "pytorch_model-00002-of-00002.bin")
    checkpoint = open_checkpoint(tmp_path)
    assert found(checkpoint, "dangerous-global").severity is Severity.ERROR
    assert checkpoint.globals[0].place == "pytorch_model-00002-of-00002.bin: x"
    assert not marker.exists()


# -- the index ----------------------------------------------------------------------------------------------------

BAD = [
    b'{"weight_map": {}}',
    b'{"weight_map": []}',
    b'{"weight_map": {"a": 1}',
    b'{"weight_map": {"a": "b"}} trailing',
    b'{"weight_map": ' + b"[" * 100_000,
    b'{"weight_map": {"a": {"b": "c"}}}',
    b'{"weight_map": {"a": "nothing.bin"}}',
    b'{"weight_map": {"a": null, "b": NaN, "c": 1e999, "d": ' + b"9" * 5000 + b"}}",
    b'\xff{"weight_map": {"a": "b"}}',
    b'{"weight_map": {"\\ud800": "\\udfff"}}',
]


@pytest.mark.parametrize("data", BAD, ids=lambda d: ascii(d[:30]))
def test_a_bad_index_is_an_error_in_words(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_bytes(data)
    for where in (tmp_path, tmp_path / "model.safetensors.index.json"):
        with pytest.raises(ReadError) as caught:
            open_checkpoint(where)
        assert str(caught.value).encode("utf-8")


def test_keys_named_twice_and_odd_entries(tmp_path: Path) -> None:
    write(tmp_path, shards_of(2))
    place = tmp_path / "model.safetensors.index.json"
    text = place.read_text().replace(
        '"weight_map": {', '"weight_map": {"layers.0.bias": "gone", "odd": 7, "\\ud800": 1,'
    )
    place.write_text(text)
    checkpoint = open_checkpoint(tmp_path)
    assert found(checkpoint, "index-names-twice").subjects == ("layers.0.bias",)
    assert found(checkpoint, "index-entry").subjects == ("odd", "\\ud800")
    same(checkpoint, merged(shards_of(2)))


def test_limits_of_the_index(tmp_path: Path) -> None:
    place = tmp_path / "m.bin.index.json"
    place.write_text(json.dumps({"weight_map": {f"t{n}": f"f{n}" for n in range(5000)}}))
    with pytest.raises(LimitExceeded, match=r"names 5,000 files; the limit is 4,096"):
        open_checkpoint(tmp_path)
    with pytest.raises(LimitExceeded, match="JSON values"):
        open_checkpoint(tmp_path, limits=Limits(tensors=1000))
    with pytest.raises(LimitExceeded, match="an index is read up to"):
        open_checkpoint(tmp_path, limits=Limits(header_nbytes=1000))


def test_more_shards_than_files_may_be_open(tmp_path: Path) -> None:
    import resource

    write(tmp_path, [{f"t{n}": torch.full((2,), float(n))} for n in range(120)])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Tests before this one may have left some open.
    resource.setrlimit(resource.RLIMIT_NOFILE, (_highest_open() + 60, hard))
    try:
        checkpoint = open_checkpoint(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    same(checkpoint, {f"t{n}": torch.full((2,), float(n)) for n in range(120)})


def test_a_folder_that_no_file_number_is_left_for_is_not_called_empty(tmp_path: Path) -> None:
    import resource

    write(tmp_path, [{"t": torch.ones(2)}])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (_highest_open() + 20, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(ReadError, match="cannot be listed: Too many open files"):
            open_checkpoint(tmp_path)
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _highest_open() -> int:
    return max(int(number) for number in os.listdir("/dev/fd"))  # noqa: PTH208 - names alone


# -- names --------------------------------------------------------------------------------------------------------


def test_names_of_shards() -> None:
    name = shard_name("pytorch_model-00002-of-00005.bin")
    assert name is not None
    assert (name.stem, name.number, name.count, name.ending) == ("pytorch_model", 2, 5, ".bin")
    assert shard_name("model.fp16-00001-of-00002.safetensors") is not None
    assert shard_name("model-00001-of-00002.fp16.safetensors") is not None
    for other in ("model.safetensors", "model-1-of-0.bin", "epoch-00001.bin", "model-00001-of-00002.json"):
        assert shard_name(other) is None


def test_gaps_in_the_count() -> None:
    found = families([f"m-{n:05d}-of-00005.bin" for n in (1, 3, 5)])
    ((family, numbers),) = found.items()
    assert gaps(numbers, family[1]) == (2, [2, 4])
    assert gaps(dict.fromkeys(range(5), ""), 5) == (0, [])  # Counted from 0.
    assert gaps({1: ""}, 99_999) == (99_998, list(range(2, 22)))


def test_a_folder_is_not_walked_for_its_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, shards_of(2))
    monkeypatch.setattr(DirectoryFolder, "files", lambda _: pytest.fail("walked"))
    same(open_checkpoint(tmp_path, folder_readers=(READER,)), merged(shards_of(2)))


def test_nested_shards_keep_what_is_no_weight_apart(tmp_path: Path) -> None:
    """A shard that is a training checkpoint: its weights join, its optimizer stays listed under the file's name."""
    names = [f"m-0000{n}-of-00002.pt" for n in (1, 2)]
    buffer = io.BytesIO()
    torch.save({"model": {"a": torch.ones(2)}, "epoch": 3}, buffer)
    (tmp_path / names[0]).write_bytes(buffer.getvalue())
    torch.save({"model": {"b": torch.ones(3)}, "extra": {"c": torch.ones(1)}, "epoch": 3}, tmp_path / names[1])
    checkpoint = open_checkpoint(tmp_path)
    assert checkpoint.weights is not None
    assert [t.name for t in checkpoint.weights.tensors] == ["a", "b"]
    assert ("epoch", "3") in checkpoint.metadata
    assert [t.path for t in checkpoint.tensors if t.path[0].startswith("m-")] == [(names[1], "extra", "c")]


def test_an_export_never_overwrites_a_shard(tmp_path: Path) -> None:
    write(tmp_path, shards_of(2))
    checkpoint = open_checkpoint(tmp_path)
    for name in ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"):
        with pytest.raises(ExportError, match=f"{name} is the file that is being repaired"):
            check_destination(checkpoint, tmp_path / name)
    check_destination(checkpoint, tmp_path / "model.safetensors")
