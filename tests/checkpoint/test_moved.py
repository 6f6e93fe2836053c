"""What is moved keeps every field that it was not given."""

from __future__ import annotations

from dataclasses import fields, replace

from inspector.checkpoint.types import Encoding, Storage, TensorInfo


def test_a_tensor_and_a_storage_keep_all_else() -> None:
    tensor = TensorInfo(
        name="a",
        path=("x", "a"),
        shape=(2, 3),
        dtype="float16",
        nbytes=12,
        storage_id="s",
        offset=5,
        stride=(3, 1),
        device="cuda:1",
        requires_grad=True,
        layout="odd",
        is_parameter=False,
        note="a note",
        encoding=Encoding(conjugated=True),
    )
    storage = Storage(
        id="s",
        nbytes=20,
        present_nbytes=19,
        offset=7,
        deflated_nbytes=8,
        skipped_nbytes=3,
        device="cpu",
        big_endian=True,
        inline=b"x",
    )
    # Every field is told apart from its default, so that one that is forgotten shows.
    for one in (tensor, storage):
        assert all(getattr(one, field.name) != field.default for field in fields(one))
    assert tensor.moved("b", ("y",), "t") == replace(tensor, name="b", path=("y",), storage_id="t")
    assert storage.moved("t", None) == replace(storage, id="t", offset=None)
