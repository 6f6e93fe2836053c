"""Names of an archive's members that programs unpack elsewhere, or differently: said in their rows and above them."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from safetensors.numpy import save

from inspector.checkpoint.source import BufferSource
from inspector.errors import UnknownFormat
from inspector.findings import Severity
from inspector.readers import open_checkpoint
from inspector.readers.folder import escapes, leads_outside
from inspector.render import files_words
from inspector.survey.members import survey_source
from inspector.survey.report import Survey
from inspector.survey.row import Reading

OUT = ("../../../../tmp/x.safetensors", "/tmp/x.safetensors", "C:\\x.safetensors", "a/../../x", "\\x", "a/.. /.../x")
STAYS = ("a/../b.safetensors", "see http://x/y.safetensors", "a/./b", "a//b")


def survey(*names: str) -> Survey:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for n, name in enumerate(names):
            archive.writestr(name, save({f"w{n}": np.ones(2, np.float32)}))
    archive_row, *rows = survey_source(BufferSource(raw.getvalue(), "n.zip"), "n.zip", Reading(every=True))
    return Survey(name="n.zip", rows=tuple(rows), skipped=(), seconds=0.0, archive=archive_row)


def test_only_names_that_leave_the_folder_are_said_to() -> None:
    assert all(leads_outside(name) for name in (*OUT, *STAYS))
    assert [name for name in (*OUT, *STAYS) if escapes(name)] == list(OUT)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_table_says_what_is_wrong_with_the_archive_and_in_which_row() -> None:
    found = survey("good.safetensors", OUT[0], STAYS[0], "two.safetensors", "two.safetensors")
    worst = {row.path.removeprefix("n.zip/").partition(" (at")[0]: row for row in found.rows}
    assert worst["good.safetensors"].worst is None
    assert worst[OUT[0]].worst is Severity.ERROR and "leads out of the folder" in worst[OUT[0]].says
    assert "to different places" in worst[STAYS[0]].says
    twins = [row for row in found.rows if "two.safetensors" in row.path]
    assert len(twins) == 2 and all("has the same name" in row.says for row in twins)
    own = files_words.of_archive(found)
    assert {finding.id for finding in own} == {"leads-outside", "archive-doubts", "members-left-out"}
    says = files_words.answer(files_words.rows_of(found, "n.zip"), own)
    assert "The archive itself has an error" in says and "1 file has an error" in says
    outside = next(finding for finding in own if finding.id == "leads-outside")
    assert outside.subjects == (OUT[0],)


def test_a_good_archive_has_nothing_above_its_table() -> None:
    found = survey("a.safetensors", "b/c.safetensors")
    assert files_words.of_archive(found) == ()
    assert "No error and no warning" in files_words.answer(files_words.rows_of(found, "n.zip"), ())


def test_an_archive_without_files_is_no_table_without_errors() -> None:
    found = survey()
    own = files_words.of_archive(found)
    assert [(f.severity, f.says) for f in own] == [(Severity.ERROR, "n.zip is an empty zip archive.")]
    assert "No error" not in files_words.answer((), own)


def test_a_zip_of_a_folder_alone_is_not_counted_as_a_file() -> None:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("folder/", b"")
    with pytest.raises(UnknownFormat, match="with 1 folder and no file in it"):
        open_checkpoint(raw.getvalue())
