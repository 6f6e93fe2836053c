"""Where the files of the app lie: at the top of a checkout, or in the package of an installation; and which version
this is."""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

from inspector.errors import MissingLibrary

# Which extra of pyproject.toml brings a package that is imported where it is needed.
EXTRAS = {
    "torch": "torch",
    "torchvision": "torch",
    "safetensors": "torch",
    "thop": "torch",
    "PIL": "torch",
    "cv2": "torch",
    "streamlit": "web",
    "starlette": "web",
    "pandas": "web",
    "plotly": "web",
    "sklearn": "projector",
    "umap": "projector",
    "distributed": "cluster",
    "fsspec": "remote",
    "duckdb": "catalogue",
}
# Packages whose project on PyPI is called otherwise.
_PROJECTS = {"PIL": "pillow", "cv2": "opencv-python-headless", "sklearn": "scikit-learn", "umap": "umap-learn"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PACKAGE = Path(__file__).resolve().parent


def app_folder() -> Path | None:
    """The folder of app.py, ui.py and pages/; None where they were not installed."""
    for folder in (_PACKAGE.parent, _PACKAGE / "app_files"):
        if (folder / "app.py").is_file() and (folder / "pages").is_dir():
            return folder
    return None


def sample_sources() -> Path | None:
    """The folder of the program that makes the sample files, and of their manifest."""
    folder = app_folder()
    return folder / "sample_models" if folder is not None else None


def samples_folder() -> Path:
    """Where the derived sample files (files/) and pictures (pictures/) are: in a checkout beside what makes them, else
    in the person's cache ($INSPECTOR_SAMPLES names another place)."""
    if os.environ.get("INSPECTOR_SAMPLES"):
        return Path(os.environ["INSPECTOR_SAMPLES"])
    sources = sample_sources()
    if sources is not None and _PACKAGE not in sources.parents:
        return sources
    return _cache() / f"samples-{own_version()}"


def missing_package(error: ImportError) -> str:
    """One sentence about a package that an extra would have brought, "" for any other failure to import."""
    name = (error.name or "").partition(".")[0]
    if name not in EXTRAS:
        return ""
    return f"This needs {name}, which is not installed. {install_line(name)}"


def is_installed(name: str) -> bool:
    """Whether a package can be imported, without importing it."""
    try:
        spec = find_spec(name)
    except ValueError:  # A module that somebody put there by hand, and that is there.
        return True
    # A folder of that name in the working directory is found, too, and is no package.
    return spec is not None and spec.origin is not None


def require(name: str, what: str) -> None:
    """Raise MissingLibrary, with the command that helps, where a package of EXTRAS is missing. what: needs it."""
    if not is_installed(name):
        raise MissingLibrary(f"{what} needs {name}, which is not installed.", hint=install_line(name))


def install_line(*names: str) -> str:
    """How to get these packages of EXTRAS, and all that comes with them, as a sentence."""
    wanted: list[str] = []
    for name in names:
        # Metadata of before the extra: the package alone. An extra's own name may be anybody's project on PyPI.
        wanted += _packages(EXTRAS[name]) or [_PROJECTS.get(name, name)]
    return f"Run: pip install {' '.join(dict.fromkeys(wanted))}"


def _packages(extra: str) -> list[str]:
    """What an extra of this installation names. By the packages' own names: another project has ours on PyPI."""
    try:
        listed = requires("model-inspector") or []
    except PackageNotFoundError:
        listed = []
    found = [line.partition(";")[0] for line in listed if f'extra == "{extra}"' in line]
    return [match[0] for text in found if (match := _NAME.match(text)) and match[0] != "model-inspector"]


def own_version() -> str:
    """As the installed metadata says it; "0" for files that nobody installed."""
    try:
        return version("model-inspector")
    except PackageNotFoundError:
        return "0"


def _cache() -> Path:
    if sys.platform == "win32":
        place = os.environ.get("LOCALAPPDATA", "")
    else:
        place = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(place) if place else Path.home() / ".cache") / "model-inspector"
