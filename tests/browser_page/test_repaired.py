"""Tiny networks under every corruption of the repair benchmark, each with the intact network beside it as the target:
the page's repaired file is the command line's, byte for byte, and refused where it refuses; in Node."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.keybench.architectures import architecture_of
from benchmarks.keybench.corruptions import CORRUPTIONS
from benchmarks.keybench.engine import Answered, answered
from benchmarks.keybench.numbers import fingerprints
from benchmarks.keybench.run import is_case
from inspector.architectures.targets import target_of_checkpoint
from inspector.exports.writers import WRITERS
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint
from tests.browser_page.nodes import ask_in_node
from tests.browser_page.written import Count, Wanted, by_command_line, sha256_in

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("site-page"), pytest.mark.timeout(3600)]
NETS = ("bert_tiny", "unet_tiny", "lstm_tiny")


def _pairs(folder: Path) -> Iterator[tuple[Path, Path, Answered]]:
    """The damaged file, an intact one with other numbers, and what a user who knows the truth says to the questions."""
    for net in NETS:
        own = fingerprints(architecture_of(net), 0)
        for corruption in CORRUPTIONS:
            case = corruption.make(own, random.Random(zlib.crc32(f"{net} {corruption.name}".encode())))
            if is_case(corruption, case):
                name = re.sub(r"\W+", "-", f"{net} {corruption.name}")
                damaged, intact = folder / f"{name}.pth", folder / f"{name}.target.pth"
                torch.save(case.file, damaged)
                torch.save({key: tensor + 1 for key, tensor in case.truth.items()}, intact)
                checkpoint, target = open_checkpoint(damaged), target_of_checkpoint(open_checkpoint(intact), "intact")
                yield damaged, intact, answered(corruption, checkpoint, target, diagnose(checkpoint, target), case)


def test_repaired_files_are_the_command_lines(
    dist: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, work, written = (tmp_path / name for name in ("made", "work", "written"))
    for folder in (made, work, written):
        folder.mkdir()
    asked: list[dict[str, Any]] = []
    wanted: list[tuple[int, Wanted, Path]] = []
    for number, (damaged, intact, said) in enumerate(_pairs(made)):
        at = f"/work/{damaged.name}"
        options = ["--target", f"file:{intact.name}"]
        options += [word for rule in said.accepted for word in ("--accept", rule)]
        options += [word for question, answer in said.answers.items() for word in ("--choose", f"{question}={answer}")]
        one = Wanted(damaged, "repair", WRITERS[number % len(WRITERS)].id, options=tuple(options))
        chosen = {"other": f"/work/{intact.name}", "accept": list(said.accepted), "choose": said.answers}
        asked += [{"ask": "open", "path": at}, {"ask": "repair", "path": at, **chosen}]
        wanted.append((len(asked), one, written / str(number)))
        asked += [one.asked(at, f"/written/{number}"), {"ask": "close", "path": at}]
        (written / str(number)).mkdir()
    told = ask_in_node(dist, made, asked, written)
    count = Count()
    monkeypatch.chdir(made)
    for place, one, folder in wanted:
        count.add(one, by_command_line(one, work), told[place], sha256_in(folder))
        capsys.readouterr()
    with capsys.disabled():
        print(f"Node: {count}")
    assert count.other == []
    assert count.counts["repair: equal"] > len(wanted) / 3
