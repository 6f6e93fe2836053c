"""What pyproject.toml cannot say: the files of the app, which stay at the top of the repository, go into the package.

They become inspector/app_files, so that nothing but `inspector` lands at the top of site-packages. An editable
installation uses them where they are (inspector/installed.py).
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
PATTERNS = (
    "app.py",
    "ui.py",
    "pages/*.py",
    ".streamlit/config.toml",
    "sample_models/*.py",
    "sample_models/manifest.json",
    "sample_models/README.md",
    "sample_models/weights/*.safetensors",
    "sample_models/photographs/*",
)


class BuildWithApp(build_py):
    """build_py, and then those files."""

    def app_files(self) -> dict[Path, Path]:
        """From where to where."""
        to = Path(self.build_lib) / "inspector" / "app_files"
        found = [path for pattern in PATTERNS for path in sorted(HERE.glob(pattern))]
        return {path: to / path.relative_to(HERE) for path in found}

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for source, target in self.app_files().items():
                self.mkpath(str(target.parent))
                self.copy_file(str(source), str(target))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        more = [] if self.editable_mode else [str(path) for path in self.app_files().values()]
        return [*super().get_outputs(include_bytecode), *more]


setup(cmdclass={"build_py": BuildWithApp})
