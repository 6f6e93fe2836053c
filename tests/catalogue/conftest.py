"""What the tests of the catalogue share; without DuckDB there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.catalogue.parts import PartFolder
from tests.catalogue.zoo import bring_up_to_date, make_zoo, run_audit

pytest.importorskip("duckdb")


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> PartFolder:
    """The catalogue of the zoo, for questions alone."""
    root = tmp_path_factory.mktemp("zoo")
    run_audit(make_zoo(root / "zoo"), root / "store")
    return bring_up_to_date(root / "store")[1]


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    return make_zoo(tmp_path / "zoo")
