"""The drawing's scripts: by name and version only, kept by the browser for as long as it likes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.applications import Starlette

from inspector.web import static_files
from inspector.web.front.headers import headers_for
from tests.web.asgi_client import Client

STATIC = Path(static_files.__file__).parent / "static"


@pytest.fixture
def client() -> Client:
    return Client(Starlette(routes=[static_files.static_route()]))


def test_a_script_comes_as_one_and_is_kept(client: Client) -> None:
    for name in ("drawing/worker.js", "vendor/dagre.esm.js"):
        got = client.get(static_files.address_of(name))
        assert got.status == 200 and got.body == (STATIC / name).read_bytes()
        # Browsers take no module of another type, and "nosniff" stands beside it.
        assert got.headers["content-type"] == "text/javascript; charset=utf-8"
        assert got.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_nothing_else_is_served(client: Client) -> None:
    address = static_files.address_of("drawing/worker.js")
    version = address.split("/")[3]
    for path in (
        address.replace(version, "0" * len(version)),
        f"/inspector/static/{version}/drawing/",
        f"/inspector/static/{version}/drawing/../drawing.js",
        f"/inspector/static/{version}/vendor/README.md",
        f"/inspector/static/{version}//etc/passwd",
        "/inspector/static/",
    ):
        got = client.get(path)
        assert got.status == 404 and "cache-control" not in got.headers
    with pytest.raises(KeyError):
        static_files.address_of("vendor/README.md")


def test_scripts_import_scripts_that_are_served_and_nothing_from_elsewhere() -> None:
    """A version's scripts find each other beside them; the policy lets them and their worker come from here alone."""
    for path in (STATIC / "drawing").glob("*.js"):
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r"from '([^']+)'", text):
            name = (path.parent / target).resolve().relative_to(STATIC).as_posix()
            assert static_files.address_of(name)
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    policy = dict(headers_for(b""))[b"content-security-policy"].decode()
    assert "worker-src 'self'" in policy and "script-src 'self'" in policy


def test_who_wrote_what_is_not_ours_stands_beside_it() -> None:
    readme = (STATIC / "vendor" / "README.md").read_text(encoding="utf-8")
    for path in (STATIC / "vendor").glob("*.js"):
        name = path.name.partition(".")[0]
        assert f"`{path.name}`" in readme and f"`{name}.LICENSE`" in readme
        assert "Permission is hereby granted" in (STATIC / "vendor" / f"{name}.LICENSE").read_text(encoding="utf-8")
        version = re.search(r'"(\d+\.\d+\.\d+)"', path.read_text(encoding="utf-8"))
        assert version is not None and f"| {version[1]} |" in readme
