"""app: starts the web app."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from inspector.errors import UsageError
from inspector.installed import app_folder, install_line, sample_sources, samples_folder
from inspector.side_files import PathKind, kind_of_path, shown_name

# Beside the time that the server gives to what is under way.
_PATIENCE_SECONDS = 10.0
_DRAIN_VARIABLE, _DRAIN_SECONDS = "INSPECTOR_DRAIN_SECONDS", 30.0


def app_(
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8501,
    address: Annotated[
        str, typer.Option(help="Address to listen on; other machines reach it only if it is not local.")
    ] = ("127.0.0.1"),
    root: Annotated[Path | None, typer.Option(help="Folder on this machine whose files may be opened by path.")] = None,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
) -> int:
    """Start the web app on this machine."""
    folder = app_folder()
    if folder is None:
        raise UsageError("The web app is not part of this installation.", hint="Run it from a checkout of the project.")
    if find_spec("streamlit") is None:
        raise UsageError("The web app needs Streamlit.", hint=install_line("streamlit", "torch"))
    _make_samples()
    environment = dict(os.environ)
    if root is not None:
        if kind_of_path(root) is not PathKind.FOLDER:
            raise UsageError(f"{shown_name(root)} is no folder.", hint="Name one whose files may be opened.")
        environment["INSPECTOR_ROOT"] = str(root.resolve())
    environment["INSPECTOR_BROWSER"] = "1" if browser else "0"
    options = ["--server.port", str(port), "--server.address", address, "--server.headless", "true"]
    command = [sys.executable, "-m", "streamlit", "run", str(folder / "app.py"), *options]
    server = subprocess.Popen(command, env=environment, cwd=folder)
    try:
        return server.wait()
    finally:
        # A signal that ends this command ends the server with it; Ctrl-C reached it already.
        if server.poll() is None:
            server.terminate()
            try:
                server.wait(_PATIENCE_SECONDS + _drain_seconds(environment))
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _drain_seconds(environment: Mapping[str, str]) -> float:
    stated = environment.get(_DRAIN_VARIABLE, "")
    return float(stated) if stated.isdecimal() else _DRAIN_SECONDS


def _make_samples() -> None:
    """The sample files of an installation, once: they are saved by torch, from weights that came with the package."""
    folder, sources = samples_folder(), sample_sources()
    if sources is None or (folder / "files").is_dir() or find_spec("torch") is None:
        return
    typer.echo("Making the sample files, once ...", err=True)
    places = ["--output", str(folder / "files"), "--pictures", str(folder / "pictures")]
    made = subprocess.run([sys.executable, str(sources / "build.py"), "derive", *places], check=False)
    if made.returncode:
        typer.echo("The sample files could not be made; the app does without.", err=True)
