"""The line that brings what is missing names projects of PyPI, never an extra of ours: that may be anybody's there."""

from __future__ import annotations

import pytest

from inspector import installed


@pytest.mark.parametrize(
    ("name", "project"), [("umap", "umap-learn"), ("sklearn", "scikit-learn"), ("streamlit", "streamlit")]
)
def test_without_metadata_of_the_extra(name: str, project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "requires", lambda distribution: [])
    assert installed.install_line(name) == f"Run: pip install {project}"


def test_with_it_all_that_comes_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = ['scikit-learn>=1.6; extra == "projector"', 'umap-learn>=0.5.7; extra == "projector"']
    monkeypatch.setattr(installed, "requires", lambda distribution: listed)
    assert installed.install_line("umap", "sklearn") == "Run: pip install scikit-learn umap-learn"
