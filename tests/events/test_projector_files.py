"""The Projector's files, as its own plugin reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.errors import UsageError
from inspector.events.projector_files import Embedding, Sprite, write_projector

ROWS = np.array([[1 / 3, -2.0], [0.0, 3e-38], [16777217.0, 1e-45]], np.float32)


def test_the_plugin_reads_what_was_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
    from tensorboard.plugins.projector.projector_plugin import _read_tensor_tsv_file

    name = 'last "layer"\\ ü\n'
    sprite = Sprite(png=b"\x89PNG", size=(20, 30))
    pairs = [("a\tb", "1"), ("", "2"), ("c\nd\u2028e", "ü")]
    one = Embedding(name=name, rows=ROWS, columns=("label", "class"), metadata=pairs, sprite=sprite)
    written = write_projector(tmp_path, [one, Embedding(name="b", rows=[[1]], metadata=[("x",)])])
    assert {path.relative_to(tmp_path).as_posix() for path in written} == {
        "projector_config.pbtxt",
        *(f"projector/{kind}_{number}.tsv" for kind in ("tensor", "metadata") for number in (0, 1)),
        "projector/sprite_0.png",
    }
    config = text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), ProjectorConfig())
    first, second = config.embeddings
    assert first.tensor_name == name and list(first.tensor_shape) == [3, 2]
    np.testing.assert_array_equal(_read_tensor_tsv_file(str(tmp_path / first.tensor_path)), ROWS)
    lines = (tmp_path / first.metadata_path).read_text().splitlines()
    assert lines == ["label\tclass", "a b\t1", "-\t2", "c d e\tü"]
    assert (tmp_path / first.sprite.image_path).read_bytes() == b"\x89PNG"
    assert list(first.sprite.single_image_dim) == [30, 20]  # Width and height.
    # One column has no heading.
    assert (tmp_path / second.metadata_path).read_text() == "x\n"


@pytest.mark.parametrize(
    ("embedding", "says"),
    [
        (Embedding(name="e", rows=np.zeros(3)), "a table of rows"),
        (Embedding(name="e", rows=np.zeros((0, 3))), "a table of rows"),
        (Embedding(name="e", rows=[[float("nan")]]), "not finite"),
        (Embedding(name="e", rows=[[1e300]]), "not finite as float32"),
        (Embedding(name="e", rows=ROWS, metadata=[("a",)]), "3 rows and 1 of metadata"),
        (Embedding(name="e", rows=[[1]], metadata=[("a", "b")]), "another number of columns"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_anything_is_written(
    embedding: Embedding, says: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=says):
        write_projector(tmp_path, [Embedding(name="good", rows=[[1]]), embedding])
    assert list(tmp_path.iterdir()) == []
