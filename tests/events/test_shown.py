"""TensorBoard itself, started on what we wrote: what its pages are served is what went in."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from PIL import Image

from inspector.events.png import encode_png
from inspector.events.projector_files import Embedding, Sprite, write_projector
from inspector.events.read import read_events
from inspector.events.write import count_at_thresholds, event_file
from inspector.graph.types import Edge, Graph, GraphSource, Node
from tests.events.made import WHEN, plain_scalar, scalars

pytest.importorskip("tensorboard")

EDGES = (-1.0, 0.0, 0.5, 4.0)
COUNTS = (3.0, 0.0, 1.5)
ROWS = np.array([[1.5, -2.0], [0.25, 8.0], [0.0, 1.0]], np.float32)
PICTURE = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
GRAPH = Graph(
    origin=GraphSource.ONNX,
    nodes=(Node(id="x", label="input"), Node(id="conv", label="conv2d", group="layer1.0")),
    groups=(),
    edges=(Edge(source="x", target="conv", shape=(1, 3)),),
)
_ADDRESS = re.compile(r"at (http://\S+?)/? ")

Get = Callable[..., Any]


def _scores() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.random(200), generator.random(200) < 0.5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("logs")
    run, again = where / "run", where / "again"
    run.mkdir()
    again.mkdir()
    with event_file(run, WHEN) as writer:
        for step in (0, 10, 20):
            writer.scalar("train/loss", step, 1 / (step + 1), WHEN + step)
            writer.histogram("weights/fc", step, EDGES, COUNTS)
        writer.text("notes", 0, "# Title")
        writer.image("picture", 3, encode_png(PICTURE), PICTURE.shape[:2])
        writer.pr_curve("curve", 1, count_at_thresholds(*_scores(), thresholds=11))
        writer.graph(GRAPH)
    sprite = Sprite(png=encode_png(PICTURE), size=(2, 2))
    write_projector(run, [Embedding(name="rows", rows=ROWS, metadata=[("a",), ("b",), ("c",)], sprite=sprite)])
    # Logged twice: what TensorBoard makes of it is what the reader has to make of it.
    twice = scalars(10) + b"".join(plain_scalar("loss", 100.0 + step, step=step) for step in (5, 6, 6, 7))
    (again / "events.out.tfevents.1.a").write_bytes(twice)
    return where


@pytest.fixture(scope="module")
def get(folder: Path) -> Iterator[Get]:
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--port", "0", "--host", "127.0.0.1"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        assert server.stderr is not None
        said = ""
        for line in server.stderr:
            said += line
            if found := _ADDRESS.search(line):
                address = found[1]
                break
        else:
            pytest.fail(f"TensorBoard did not start: {said}")

        def ask(path: str, **query: str) -> Any:
            with urllib.request.urlopen(f"{address}/data/{path}?{urlencode(query)}", timeout=30) as answer:
                raw = answer.read()
            return json.loads(raw) if "json" in (answer.headers["Content-Type"] or "") else raw

        # It answers before it has read all.
        for _ in range(400):
            if len(ask("runs")) == 2 and ask("plugin/graphs/info").get("run", {}).get("run_graph"):
                break
            time.sleep(0.02)
        yield ask
    finally:
        server.terminate()
        server.wait(timeout=30)
        if server.stderr is not None:
            server.stderr.close()


def test_scalars(get: Get) -> None:
    served = get("plugin/scalars/scalars", run="run", tag="train/loss")
    assert served == [[WHEN + step, step, float(np.float32(1 / (step + 1)))] for step in (0, 10, 20)]


def test_steps_that_were_logged_twice_are_read_as_they_are_served(get: Get, folder: Path) -> None:
    (series,) = read_events(sorted((folder / "again").iterdir())).scalars
    served = get("plugin/scalars/scalars", run="again", tag="loss")
    assert served == [[wall_time, step, value] for step, value, wall_time in series]
    assert [step for _, step, _ in served] == list(range(8)) and served[5][2] == 105.0


def test_histograms_and_distributions(get: Get) -> None:
    served = get("plugin/histograms/histograms", run="run", tag="weights/fc")
    assert [step for _, step, _ in served] == [0, 10, 20]
    assert served[0][2] == [[-1.0, 0.0, 3.0], [0.0, 0.5, 0.0], [0.5, 4.0, 1.5]]
    shares = get("plugin/distributions/distributions", run="run", tag="weights/fc")[0][2]
    assert shares[0] == [0, -1.0] and shares[-1] == [10000, 4.0]


def test_text(get: Get) -> None:
    assert get("plugin/text/text", run="run", tag="notes")[0]["text"] == "<h1>Title</h1>"


def test_images(get: Get) -> None:
    (one,) = get("plugin/images/images", run="run", tag="picture")
    assert one["step"] == 3
    key = one["query"].partition("=")[2]
    png = get("plugin/images/individualImage", blob_key=key)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(png))), PICTURE)


def test_precision_recall_curves(get: Get) -> None:
    (curve,) = get("plugin/pr_curves/pr_curves", run="run", tag="curve")["run"]
    scores, truth = _scores()
    border = curve["thresholds"][4]
    called = scores >= border
    assert border == 0.4 and curve["true_positives"][4] == (called & truth).sum()
    assert curve["precision"][4] == pytest.approx((called & truth).sum() / called.sum())
    assert curve["recall"][4] == pytest.approx((called & truth).sum() / truth.sum())


def test_the_graph(get: Get) -> None:
    drawn = get("plugin/graphs/graph", run="run", conceptual="false").decode()
    assert 'name: "layer1/0/conv"' in drawn and 'op: "conv2d"' in drawn and 'input: "x"' in drawn


def test_the_projector(get: Get) -> None:
    assert get("plugin/projector/runs") == ["run"]
    (embedding,) = get("plugin/projector/info", run="run")["embeddings"]
    assert embedding["tensorName"] == "rows" and embedding["tensorShape"] == [3, 2]
    raw = get("plugin/projector/tensor", run="run", name="rows", num_rows="100")
    np.testing.assert_array_equal(np.frombuffer(raw, np.float32).reshape(3, 2), ROWS)
    assert get("plugin/projector/metadata", run="run", name="rows", num_rows="100") == b"a\nb\nc\n"
    sprite = get("plugin/projector/sprite_image", run="run", name="rows")
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(sprite))), PICTURE)
