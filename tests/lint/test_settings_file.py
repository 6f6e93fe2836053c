"""`inspector.toml`: found upwards, and refused with the place where it means nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.errors import InspectorError, LimitExceeded, UsageError
from inspector.findings import Severity
from inspector.health.thresholds import DEFAULTS
from inspector.lint.request import Override, Settings
from inspector.lint.settings_file import NAME, find_settings, read_settings

WHOLE = """
[check]
fail-on = "warning"
select = ["non-finite", "dangerous"]
ignore = ["wrapper-*"]
weights-up-to = "2GB"

[[check.overrides]]
paths = ["old/*", "third_party/*"]
ignore = ["large-weight"]

[thresholds]
large = 5000
few = 64
"""


def _written(folder: Path, text: str) -> Path:
    path = folder / NAME
    path.write_text(text)
    return path


def test_every_setting_is_read(tmp_path: Path) -> None:
    settings = read_settings(_written(tmp_path, WHOLE))
    assert settings.fail_on is Severity.WARNING
    assert (settings.select, settings.ignore) == (("non-finite", "dangerous"), ("wrapper-*",))
    assert settings.weights_up_to == 2_000_000_000
    assert settings.overrides == (Override(paths=("old/*", "third_party/*"), ignore=("large-weight",)),)
    assert (settings.thresholds.large, settings.thresholds.few) == (5000.0, 64)
    assert isinstance(settings.thresholds.large, float)
    assert settings.folder == tmp_path and settings.source == (tmp_path / NAME).as_posix()


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    settings = read_settings(_written(tmp_path, ""))
    default = Settings()
    assert settings.thresholds == DEFAULTS and settings.fail_on is default.fail_on and settings.overrides == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[check", "is no TOML"),
        ("a = " + "[" * 5000, "is no TOML"),
        ("[chekc]", 'no table is called "chekc". Did you mean check?'),
        ("check = 1", "check is no table"),
        ("[check]\nfail_on = 'error'", 'no setting is called "fail_on". Did you mean fail-on?'),
        ("[check]\nfail-on = 'fatal'", 'fail-on is "fatal"'),
        ("[check]\nfail-on = 3", "fail-on must be a text in quotes, not 3"),
        ("[check]\nfail-on = ''", "fail-on must be a text"),
        ("[check]\nselect = 'non-finite'", "select must be a list of texts"),
        ("[check]\nselect = ['']", "select must be a list of texts"),
        (
            "[check]\nignore = ['nonfinite']",
            '[check] ignore: no finding is called "nonfinite". Did you mean non-finite?',
        ),
        ("[check]\nweights-up-to = 'much'", "weights-up-to"),
        ("[check]\nweights-up-to = 7", "weights-up-to must be a text"),
        ("[[check.overrides]]\nignore = ['non-finite']", "paths is missing"),
        ("[[check.overrides]]\npath = ['a']", 'no setting is called "path". Did you mean paths?'),
        ("[check]\noverrides = 3", "overrides is no list of tables"),
        ("[thresholds]\nlarg = 3", 'no threshold is called "larg". Did you mean large?'),
        ("[thresholds]\nlarge = 'x'", "large must be a finite number, not 'x'"),
        ("[thresholds]\nlarge = true", "large must be a finite number, not True"),
        ("[thresholds]\nlarge = inf", "large must be a finite number, not inf"),
        ("[thresholds]\nfew = 2.5", "few must be a whole number from 0 on, not 2.5"),
        ("[thresholds]\nfew = -1", "few must be a whole number"),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        read_settings(_written(tmp_path, text))
    assert NAME in str(error.value) and says in str(error.value) and len(str(error.value)) < 500


def test_bytes_that_are_no_text_and_files_without_an_end_are_refused(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is no TOML"):
        read_settings(path)
    path.write_bytes(b"#" * 300_000)
    with pytest.raises(LimitExceeded, match="is too long"):
        read_settings(path)
    path.unlink()
    with pytest.raises(InspectorError, match="There is no file"):
        read_settings(path)


def test_the_nearest_one_upwards_is_found(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "model.pth").write_bytes(b"")
    outer = _written(tmp_path, "")
    assert find_settings(deep / "model.pth") == outer and find_settings(deep) == outer
    inner = _written(deep, "")
    assert find_settings(deep / "model.pth") == inner and find_settings(deep) == inner
    assert find_settings(tmp_path / "a") == outer
    # What is called so and is no file is passed over.
    inner.unlink()
    inner.mkdir()
    assert find_settings(deep) == outer
