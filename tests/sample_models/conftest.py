"""The derived family, made once for these tests from the committed weights."""

import json
from pathlib import Path

import pytest

import sample_models
from sample_models.family import derive

HOME = Path(sample_models.__file__).parent


@pytest.fixture(scope="session")
def family(tmp_path_factory):
    """The folder with the derived files; pictures are under pictures/."""
    folder = tmp_path_factory.mktemp("family")
    derive(folder, pictures=folder / "pictures")
    return folder


@pytest.fixture(scope="session")
def manifest():
    return json.loads((HOME / "manifest.json").read_text(encoding="utf-8"))
