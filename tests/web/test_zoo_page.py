"""The Zoo page: the operator's catalogue, with ways to the files that visitors may open and to no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inspector.web import zoo
from inspector.web.server_listing import list_root
from tests.catalogue.zoo import bring_up_to_date, make_zoo, run_audit
from tests.web.finishing import finish

pytest.importorskip("duckdb")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, app: AppTest) -> Path:
    """A server's folder with the zoo in it, and its store beside."""
    (tmp_path / "open").mkdir()
    zoo._state.clear()
    list_root.clear()
    monkeypatch.setenv("INSPECTOR_ROOT", str(tmp_path / "open"))
    monkeypatch.setenv("INSPECTOR_CATALOGUE", str(tmp_path / "audits"))
    make_zoo(tmp_path / "open" / "zoo")
    return tmp_path / "open"


def audited(root: Path) -> None:
    run_audit(root / "zoo", root.parent / "audits", base=root)
    bring_up_to_date(root.parent / "audits")


def on_zoo(app: AppTest) -> AppTest:
    app.run().switch_page("pages/zoo.py").run()
    finish(app)
    assert not app.exception and not app.error
    return app


def html(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def test_without_an_audit_it_says_how_to_make_one(app: AppTest, root: Path) -> None:
    on_zoo(app)
    assert "<h1>Zoo</h1>" in html(app)
    (line,) = app.code
    assert line.value == "inspector audit MODELS --store STORE --digest"
    assert not app.dataframe


def test_the_answer_comes_first_and_the_worst_file_on_top(app: AppTest, root: Path) -> None:
    audited(root)
    on_zoo(app)
    assert "7 files of" in html(app) and "7 checkpoints; 1 file has an error." in html(app)
    (frame,) = (element.value for element in app.dataframe)
    assert frame["File"].iloc[0] == "evil.pkl" and frame["Worst"].iloc[0] == "Error" and len(frame) == 7
    assert r"Files below zoo\/." in [caption.value for caption in app.caption]
    app.text_input(key="zoo-text").set_value("TUNE").run()
    finish(app)
    (frame,) = (element.value for element in app.dataframe)
    assert sorted(frame["File"]) == ["tune1.safetensors", "tune2.safetensors"]
    app.text_input(key="zoo-text").set_value("'; drop table files; --").run()
    finish(app)
    assert not app.dataframe and "No file is like that." in [caption.value for caption in app.caption]


@pytest.mark.parametrize(
    ("part", "column", "values"),
    [
        ("Copies", "Files", [3, 2]),
        ("Shared tensors", "Files", [5, 5, 5, 5, 5, 3]),
        ("Shared trunks", "Tensors shared", [6, 6, 5, 5]),
    ],
)
def test_kinship_is_shown_as_the_catalogue_has_it(
    app: AppTest, root: Path, part: str, column: str, values: list[int]
) -> None:
    audited(root)
    on_zoo(app)
    app.segmented_control(key="zoo-part").set_value(part).run()
    finish(app)
    assert not app.exception and not app.error
    (frame,) = (element.value for element in app.dataframe)
    assert sorted(frame[column], reverse=True) == values


def test_only_what_lies_in_the_servers_folder_can_be_opened(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret.pth"
    secret.write_bytes(b"x")
    (root / "link.pth").symlink_to(secret)
    assert zoo.inside_root(str(root / "zoo" / "base.pth")) == "zoo/base.pth"
    for place in (str(secret), f"{root}-too/a.pth", "s3://bucket/a.pth", "", "a\0b"):
        assert zoo.inside_root(place) is None
    # Below it by name and not in truth: refused where it is opened.
    with pytest.raises(Exception, match="outside the folder"):
        zoo.open_file("link.pth")
    with pytest.raises(Exception, match="outside the folder"):
        zoo.open_file("../secret.pth")
    monkeypatch.delenv("INSPECTOR_ROOT")
    assert zoo.inside_root(str(root / "zoo" / "base.pth")) is None


def test_a_pair_goes_on_to_the_page_that_proves_what_it_is(
    app: AppTest, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited(root)
    gone: list[tuple[str, dict[str, str]]] = []
    taken: list[str] = []
    monkeypatch.setattr(zoo.st, "switch_page", lambda page, query_params: gone.append((page, query_params)))
    monkeypatch.setattr(zoo.session, "take", lambda stored: taken.append(stored.sha256))
    monkeypatch.setattr("inspector.web.session.owner", lambda: "me")
    zoo.compare("zoo/base.pth", "zoo/tune1.safetensors")
    ((page, address),) = gone
    assert page == "pages/compare.py" and address["with-name"] == "tune1.safetensors"
    assert len(taken) == 1 and taken[0] != address["with"]


def test_the_page_is_offered_where_the_operator_names_a_store_alone(
    app: AppTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from inspector.web.server_paths import audits_store

    monkeypatch.delenv("INSPECTOR_CATALOGUE", raising=False)
    assert audits_store() is None
    monkeypatch.setenv("INSPECTOR_CATALOGUE", str(tmp_path))
    assert audits_store() == tmp_path.resolve()


@pytest.mark.parametrize(
    ("paths", "above"),
    [
        (["a/b/c.pth", "a/b/d.pth"], "a/b/"),
        (["a/bc/x.pth", "a/bd/x.pth"], "a/"),
        (["/srv/zoo", "/srv/zoo/x.pth"], "/srv/"),
        (["https://host/x.pth", "https://host/y/z.pth"], "https://host/"),
        (["x.pth", "a/x.pth"], ""),
        (["/x.pth", "/a/x.pth"], ""),
        (["a/b/c.pth"], ""),
    ],
)
def test_what_all_paths_begin_with_is_said_once(paths, above):
    assert zoo._folder_of(paths) == above
    assert all(path.startswith(above) for path in paths)
