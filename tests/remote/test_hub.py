"""Repositories of the hub, against a server on this machine that speaks its API: chosen, read by ranges, counted."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch

from inspector.checkpoint.data import read_array
from inspector.checkpoint.types import Checkpoint
from inspector.cli.main import run
from inspector.errors import AddressError, AddressRefused, ReadError, UnknownFormat
from inspector.findings import Severity
from inspector.overview import Topic, summarise
from inspector.readers import open_at, open_checkpoint
from inspector.readers.hub.choice import choose
from inspector.readers.hub.place import HubPlace, is_hub_place, parse_place
from inspector.readers.remote import own_client
from tests.hub_serving import COMMIT, publish
from tests.serving import Server, serving

CONFIG = json.dumps({"model_type": "llama", "num_attention_heads": 4}).encode()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with serving() as told:
        monkeypatch.setenv("HF_ENDPOINT", told.base)
        yield told


def weights(n: int, numel: int = 20_000, start: int = 0) -> bytes:
    return safetensors.numpy.save(
        {f"layers.{i}.weight": np.full((numel,), i, dtype=np.float32) for i in range(start, start + n)}
    )


def sharded(count: int, each: int = 3) -> dict[str, bytes]:
    names = [f"model-{i + 1:05d}-of-{count:05d}.safetensors" for i in range(count)]
    files = {name: weights(each, start=each * i) for i, name in enumerate(names)}
    places = {f"layers.{each * i + j}.weight": name for i, name in enumerate(names) for j in range(each)}
    index = {"metadata": {"total_size": count * each * 80_000}, "weight_map": places}
    return {**files, "model.safetensors.index.json": json.dumps(index).encode(), "config.json": CONFIG}


def evidence(checkpoint: Checkpoint) -> dict[str, str]:
    return dict(checkpoint.metadata)


def test_one_file_takes_a_listing_one_request_and_its_side_files(hub: Server) -> None:
    files = {
        "model.safetensors": weights(30),
        "pytorch_model.bin": b"x" * 3_000_000,
        "config.json": CONFIG,
        "README.md": b"hello",
        "tokenizer.model": b"t" * 2000,
        "training_args.bin": b"p" * 2000,
    }
    publish(hub, "lab/net", files)
    checkpoint = open_checkpoint("lab/net")
    assert hub.paths() == [
        "/api/models/lab/net/revision/main",
        f"/lab/net/resolve/{COMMIT}/model.safetensors",
        f"/lab/net/resolve/{COMMIT}/config.json",
    ]
    assert hub.sent < 140_000 < len(files["model.safetensors"]) / 16
    assert hub.connections == 1
    assert checkpoint.origin.name == "lab/net/model.safetensors"
    assert evidence(checkpoint)["config.json: num_attention_heads"] == "4"
    (tensor,) = [t for t in checkpoint.tensors if t.name == "layers.7.weight"]
    assert read_array(checkpoint, tensor).mean() == 7.0
    (finding,) = [f for f in checkpoint.findings if f.id == "opened-inside"]
    assert "shown is model.safetensors. Not opened: pytorch_model.bin (by its name the same model" in finding.says


def test_shards_take_one_request_each_beside_index_listing_and_side_files(hub: Server) -> None:
    publish(hub, "lab/large", sharded(20))
    checkpoint = open_checkpoint("hf://lab/large@main")
    paths = hub.paths()
    assert len(paths) == 20 + 1 + 1 + 1
    assert [paths.count(f"/lab/large/resolve/{COMMIT}/{name}") for name in sharded(20)] == [1] * 22
    assert len(checkpoint.tensors) == 60
    assert checkpoint.origin.name == "lab/large"
    assert checkpoint.format_says == "sharded safetensors checkpoint, 20 files"
    assert {read_array(checkpoint, t).max() for t in checkpoint.tensors[40:43]} == {40.0, 41.0, 42.0}
    assert any("Whether an archive ends it was not looked at" in says for says in checkpoint.skipped)


def test_163_shards_are_163_requests_the_listing_and_the_index(hub: Server) -> None:
    files = sharded(163, each=1)
    del files["config.json"]
    publish(hub, "lab/giant", files)
    checkpoint = open_checkpoint("hf://lab/giant@main")
    assert len(checkpoint.tensors) == 163
    assert len(hub.log) == 163 + 1 + 1
    # No shard is asked for more than what its header may need.
    assert max(_asked_nbytes(asked.span) for asked in hub.log) <= 192_000


def _asked_nbytes(span: str) -> int:
    first, _, last = span.removeprefix("bytes=").partition("-")
    return int(last) - int(first) + 1 if last else 0


def test_shards_without_an_index_are_joined_and_found_again(hub: Server) -> None:
    files = sharded(2)
    del files["model.safetensors.index.json"]
    publish(hub, "lab/bare", {f"sub/{name}": data for name, data in files.items()} | {"README.md": b"x"})
    found = open_at("hf://lab/bare", client=own_client())
    assert len(found.checkpoint.tensors) == 6 and found.title == "lab/bare/sub"
    again = open_at(found.where, client=own_client())
    assert again.digest == found.digest and len(again.checkpoint.tensors) == 6
    assert len(open_checkpoint(f"hf://lab/bare/sub/{next(iter(files))}").tensors) == 3


def test_a_torch_zip_takes_at_most_four(hub: Server) -> None:
    buffer = io.BytesIO()
    torch.save({f"layer{i}.weight": torch.full((2000,), float(i)) for i in range(1500)}, buffer)
    publish(hub, "lab/old", {"pytorch_model.bin": buffer.getvalue()})
    checkpoint = open_checkpoint("lab/old")
    assert len(hub.log) <= 1 + 4
    assert read_array(checkpoint, checkpoint.tensors[1234]).mean() == 1234.0
    plain = open_checkpoint(buffer.getvalue())
    assert [s.offset for s in checkpoint.storages.values()] == [s.offset for s in plain.storages.values()]
    assert "first bytes of 1,500 storages were not searched" in " ".join(checkpoint.skipped)
    assert plain.skipped == ()


def test_an_archive_that_torch_did_not_align_is_read_at_its_own_headers(hub: Server, tmp_path: Path) -> None:
    import zipfile

    buffer = io.BytesIO()
    torch.save({f"w{i}": torch.full((200_000,), float(i)) for i in range(5)}, buffer)
    again = io.BytesIO()
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(again, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    publish(hub, "lab/packed", {"pytorch_model.bin": again.getvalue()})
    checkpoint = open_checkpoint("lab/packed")
    assert [read_array(checkpoint, t).mean() for t in checkpoint.tensors] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert checkpoint.skipped == ()


def test_several_are_listed_and_one_is_chosen_by_its_name(hub: Server) -> None:
    publish(hub, "lab/many", {"a.safetensors": weights(1), "b.safetensors": weights(2), "unet/model.bin": b"x" * 2000})
    with pytest.raises(UnknownFormat, match="lab/many has 3 checkpoints that could be meant") as error:
        open_checkpoint("lab/many")
    assert "a.safetensors, 80.1 kB; b.safetensors" in error.value.hint
    assert len(open_checkpoint("hf://lab/many/b.safetensors").tensors) == 2
    assert len(open_checkpoint(f"hf://lab/many@{COMMIT}/a.safetensors").tensors) == 1
    with pytest.raises(ReadError, match=r"lab/many has no file c\.safetensors"):
        open_checkpoint("hf://lab/many/c.safetensors")


def test_code_of_files_beside_the_one_shown_is_not_called_read(hub: Server) -> None:
    """ "The file names no code at all" stood there, with a pickle of the same model beside it."""
    config, index = {"config.json": CONFIG}, {f"sub/{name}": data for name, data in sharded(2).items()}
    pickles = {"pytorch_model.bin": b"x" * 2000, "training_args.bin": b"p" * 2000, "tokenizer.model": b"t" * 2000}
    publish(hub, "lab/quiet", {"model.safetensors": weights(1), "tokenizer.model": b"t" * 2000, **config})
    publish(hub, "lab/both", {"model.safetensors": weights(1), "old/a.pt": b"x" * 2000, **pickles})
    publish(hub, "lab/part", {"sub/scheduler.pt": b"x" * 2000, **pickles, **index})
    told = ("old/a.pt", "pytorch_model.bin", "training_args.bin")
    for where, expected in (
        ("lab/quiet", ()),
        ("lab/both", told),
        # As the pages open it again: by the name of what was chosen.
        (f"hf://lab/both@{COMMIT}/model.safetensors", told),
        ("hf://lab/part/sub", ("sub/scheduler.pt",)),
    ):
        before = len(hub.paths())
        checkpoint = open_checkpoint(where)
        assert checkpoint.unread == expected, where
        assert not any(path.rpartition("/")[2] in expected for path in hub.paths()[before:])
        (answer,) = [a for a in summarise(checkpoint).answers if a.topic is Topic.CODE]
        assert (answer.severity is Severity.INFO) is not bool(expected)
        assert all(path in answer.says for path in expected)
    checkpoint = open_checkpoint("lab/both")
    (says,) = [a.says for a in summarise(checkpoint).answers if a.topic is Topic.CODE]
    assert says.startswith(
        "3 other files beside it may name code and were not read for it: old/a.pt, pytorch_model.bin"
    )


def test_what_is_chosen_by_names() -> None:
    def best(*names: str, under: str = "") -> str | None:
        found = choose(dict.fromkeys(names, 10), under).best
        return found.path if found is not None else None

    index = "model.safetensors.index.json"
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    assert best("pytorch_model.bin", "model.safetensors") == "model.safetensors"
    assert best(index, *shards, "pytorch_model-00001-of-00001.bin") == index
    assert best(*shards) == shards[0]
    assert best("pytorch_model.bin", "optimizer.pt", "training_args.bin") == "pytorch_model.bin"
    assert best("model.safetensors", "onnx/model.onnx") == "model.safetensors"
    assert best("q4.gguf", "q8.gguf") is None
    assert best("unet/x.safetensors", "vae/y.safetensors", under="vae") == "vae/y.safetensors"
    assert best("README.md", "tokenizer.model") is None
    assert best("adapter_model.safetensors") == "adapter_model.safetensors"


def test_large_files_are_followed_to_where_they_lie_without_the_token(
    hub: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with serving() as store:
        publish(hub, "lab/net", {"model.safetensors": weights(30)}, store=store)
        checkpoint = open_checkpoint("lab/net")
        assert {asked.headers["Authorization"] for asked in hub.log} == {"Bearer hf_secret"}
        assert [asked.headers["Authorization"] for asked in store.log] == [None]
        assert len(hub.log) == 2 and len(store.log) == 1
        # Once known, where it lies is asked directly.
        assert read_array(checkpoint, checkpoint.tensors[29]).size == 20_000
        assert len(hub.log) == 2 and [asked.headers["Authorization"] for asked in store.log] == [None, None]
        # Nobody else sends the token on its way, though it is for the hub where that leads.
        store.odd["/to"] = lambda handler: handler.redirect(f"{hub.base}/lab/net/resolve/{COMMIT}/model.safetensors")
        hub.odd.clear()
        with pytest.raises(AddressError, match="404"):
            open_checkpoint(f"{store.base}/to")
        assert hub.log[-1].headers["Authorization"] is None


def test_what_the_hub_refuses_is_one_sentence(hub: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(hub, "lab/net", {"model.safetensors": weights(1)}, revisions=("main", "v1.0"))
    publish(hub, "lab/none", {"README.md": b"x"})
    with pytest.raises(AddressError, match=r"no revision 'v9'") as error:
        open_checkpoint("hf://lab/net@v9")
    assert error.value.hint == "It has main, v1.0."
    with pytest.raises(AddressError, match=r"has no repository lab/gone that everybody may read"):
        open_checkpoint("hf://lab/gone")
    with pytest.raises(
        AddressError, match=r"There is no file lab/gone here, and as an id of the hub: 127\.0\.0\.1 has"
    ):
        open_checkpoint("lab/gone")
    with pytest.raises(UnknownFormat, match="lab/none has no file that is named as a checkpoint"):
        open_checkpoint("lab/none")
    hub.odd["/api/models/lab/gated/revision/main"] = lambda h: h.answer(403, b"", {"X-Error-Code": "GatedRepo"})
    with pytest.raises(AddressError, match="is gated on"):
        open_checkpoint("lab/gated")
    hub.files["/api/models/lab/odd/revision/main"] = b"<html>"
    with pytest.raises(AddressError, match="does not answer as a hub does"):
        open_checkpoint("lab/odd")
    hub.files["/api/models/lab/mean/revision/main"] = json.dumps(
        {"siblings": [{"rfilename": "../../etc/x.bin", "size": 5}, {"rfilename": "a.bin", "size": -1}, 7]}
    ).encode()
    with pytest.raises(UnknownFormat, match="no file that is named as a checkpoint"):
        open_checkpoint("lab/mean")
    monkeypatch.setenv("HF_TOKEN", "a b")
    with pytest.raises(AddressRefused, match="HF_TOKEN holds no token"):
        open_checkpoint("lab/net")


def test_a_file_that_is_not_as_it_was_listed_is_said(hub: Server) -> None:
    publish(hub, "lab/net", {"model.safetensors": weights(30)})
    hub.files[f"/lab/net/resolve/{COMMIT}/model.safetensors"] = weights(31)
    with pytest.raises(AddressError, match=r"model\.safetensors changed at its address"):
        open_checkpoint("lab/net")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("hf://org/name", HubPlace(repository="org/name")),
        ("org/name@v1", HubPlace(repository="org/name", revision="v1")),
        ("hf://org/name@refs/pr/3/a/b.bin", HubPlace(repository="org/name", revision="refs/pr/3", path="a/b.bin")),
        ("hf://org/name@a%2Fb/c", HubPlace(repository="org/name", revision="a/b", path="c")),
        ("hf://datasets/org/name/x", HubPlace(repository="org/name", kind="datasets", path="x")),
    ],
)
def test_how_places_are_written(text: str, place: HubPlace) -> None:
    assert parse_place(text) == place
    assert parse_place(place.text) == place


def test_what_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("hf://na me", "hf://org/name/../x", "hf://org/na me", "hf:///x", "hf://org/name/a//b"):
        with pytest.raises(AddressRefused):
            parse_place(text)
    (tmp_path / "here").mkdir()
    for text in ("here/model", "a/b/c", "/a/b", "./a", "../a", "runs/net.pth", "a/b.json", "a\\b", ""):
        assert not is_hub_place(text)
    assert is_hub_place("org/name") and is_hub_place("org/bge-small-v1.5")


def test_the_command_lists_a_repository(hub: Server, capsys: pytest.CaptureFixture[str]) -> None:
    publish(hub, "lab/large", {**sharded(3), "pytorch_model.bin": b"x" * 2000}, revisions=("main", "v1"))
    assert run(["hub", "lab/large", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["opened"] == "model.safetensors.index.json"
    assert [(c["stands_for"], len(c["files"])) for c in report["candidates"]] == [
        ("model.safetensors", 4),
        ("pytorch_model.bin", 1),
    ]
    assert report["revisions"] == ["main", "v1"] and report["commit"] == COMMIT
    assert report["others"] == [["config.json", len(CONFIG)]]
    assert len(hub.log) == 2
    assert run(["hub", "lab/large"]) == 0
    assert "what open takes" in capsys.readouterr().out
    assert run(["hub", "lab/none"]) == 2
    assert "has no repository lab/none" in capsys.readouterr().err


def test_the_addresses_of_pages_and_old_names_are_places(hub: Server) -> None:
    file = HubPlace(repository="lab/net", revision="main", path="model.safetensors")
    for site in (hub.base, "https://huggingface.co", "HTTPS://huggingface.co"):
        for kind in ("blob", "resolve", "raw"):
            assert parse_place(f"{site}/lab/net/{kind}/main/model.safetensors?download=true") == file
        assert parse_place(f"{site}/lab/net") == HubPlace(repository="lab/net")
        assert parse_place(f"{site}/lab/net/tree/v1/sub") == HubPlace(repository="lab/net", revision="v1", path="sub")
        assert is_hub_place(f"{site}/lab/net")
    assert parse_place("HF://lab/net") == HubPlace(repository="lab/net")
    assert parse_place("hf://gpt2") == HubPlace(repository="gpt2")
    assert parse_place("hf://gpt2/model.safetensors") == HubPlace(repository="gpt2", path="model.safetensors")
    others = (
        f"{hub.base}/models/a.safetensors", f"{hub.base}/net", "https://huggingface.co/docs/hub",
        "https://example.com/lab/net", "https://huggingface.co/lab/net/resolve/main/../../x",
    )  # fmt: skip
    for other in others:
        assert not is_hub_place(other), other


def test_a_page_is_opened_as_its_place_and_an_old_name_as_the_hub_sends_it(hub: Server) -> None:
    publish(hub, "old-lab/net", {"model.safetensors": weights(1)})
    where = "/api/models/net/revision/main"
    hub.odd[where] = lambda handler: handler.redirect("/api/models/old-lab/net/revision/main?blobs=true", 307)
    for text in ("hf://net", f"{hub.base}/old-lab/net/blob/main/model.safetensors"):
        assert open_checkpoint(text).origin.name == "old-lab/net/model.safetensors"


def test_what_is_gated_or_empty_is_said_with_the_step(hub: Server, capsys: pytest.CaptureFixture[str]) -> None:
    publish(hub, "lab/gated", {"model.safetensors": weights(1)})
    path = f"/lab/gated/resolve/{COMMIT}/model.safetensors"
    hub.odd[path] = lambda handler: handler.answer(401, b"", {"X-Error-Code": "GatedRepo"})
    with pytest.raises(AddressError, match=r"lab/gated is gated on 127\.0\.0\.1") as error:
        open_checkpoint("lab/gated")
    assert "Accept the terms on its page" in error.value.hint and "HF_TOKEN" in error.value.hint
    publish(hub, "lab/texts", {"README.md": b"hello", "data/a.csv": b"1,2"})
    with pytest.raises(UnknownFormat, match="no file that is named as a checkpoint") as none:
        open_checkpoint("lab/texts")
    assert none.value.hint == "It has README.md (5 B), data/a.csv (3 B)."
