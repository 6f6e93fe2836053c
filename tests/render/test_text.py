"""Text for terminals: what a file says is shown, never obeyed."""

from __future__ import annotations

from rich.console import Console, RenderableType

from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import (
    Checkpoint,
    GlobalUse,
    GlobalVerdict,
    ModuleNode,
    Origin,
    StateDict,
    StateRole,
    TensorInfo,
)
from inspector.checkpoint.values import Value, ValueKind
from inspector.findings import Finding, Severity
from inspector.render.text import checkpoint_text, findings_text, safe, tensors_text, tree_text
from inspector.render.visible import one_line


def printed(renderable: RenderableType) -> str:
    console = Console(width=160, highlight=False, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_terminal_escapes_in_a_key_are_made_visible() -> None:
    assert one_line("a\x1b[2Jb\nc") == "a\\x1b[2Jb\\nc"
    assert one_line("naïve → ok") == "naïve → ok"
    # A right-to-left override would show a different name than the file has.
    assert one_line("a\u202eb") == "a\\u202eb"


def test_markup_in_a_key_is_not_interpreted() -> None:
    assert "[red]evil[/red]" in printed(safe("[red]evil[/red]"))


def test_findings_are_worst_first_with_their_remedy() -> None:
    note = Finding(id="n", severity=Severity.INFO, says="A note.")
    error = Finding(id="e", severity=Severity.ERROR, says="An error.", remedy="Mend it.")
    text = printed(findings_text((note, error)))
    assert text.index("An error.") < text.index("Mend it.") < text.index("A note.")
    assert printed(findings_text(())).strip() == "No findings."


def _checkpoint(*uses: GlobalUse) -> Checkpoint:
    root = Value(kind=ValueKind.MAPPING, type_name="dict", says="0 entries")
    return Checkpoint(
        origin=Origin(name="f.pth", nbytes=2048),
        format="torch-zip",
        format_says="torch.save zip archive",
        root=root,
        tensors=(),
        globals=uses,
        source=BufferSource(b""),
    )


def test_a_dangerous_global_is_listed_with_its_place_and_the_sentence_that_nothing_ran() -> None:
    use = GlobalUse(
        name="posix.system",
        verdict=GlobalVerdict.DANGEROUS,
        place="optimizer.x",
        arguments="('touch y',)",
        called=True,
        count=2,
        why="runs commands",
    )
    text = printed(checkpoint_text(_checkpoint(use)))
    for words in ("posix.system", "dangerous", "optimizer.x", "touch y", "Nothing was executed here"):
        assert words in text
    assert "safe" not in text.lower()


def test_known_globals_alone_are_one_sentence() -> None:
    use = GlobalUse(
        name="torch._utils._rebuild_tensor_v2",
        verdict=GlobalVerdict.KNOWN,
        place="",
        arguments="",
        called=True,
        count=338,
        why="rebuilds a tensor",
    )
    text = printed(checkpoint_text(_checkpoint(use)))
    assert "1 global, all known rebuild functions" in text
    assert "_rebuild_tensor_v2" not in text


def test_the_tree_says_how_much_it_hides() -> None:
    children = tuple((f"k{i}", Value(kind=ValueKind.NUMBER, type_name="int", says=str(i))) for i in range(70))
    root = Value(kind=ValueKind.MAPPING, type_name="dict", says="70 entries", children=children, size=70)
    text = printed(tree_text(root))
    assert "k59" in text
    assert "k60" not in text
    assert "and 10 more" in text


def test_a_long_list_of_tensors_is_whole_and_in_columns() -> None:
    tensors = tuple(
        TensorInfo(name=f"layer.{i}\x1b[31m.w", path=(), shape=(2, i), dtype="float32", nbytes=8 * i, storage_id=None)
        for i in range(3000)
    )
    state = StateDict(
        path=(), role=StateRole.WEIGHTS, why="", kind="dict", tensors=tensors, modules=ModuleNode(name="", path="")
    )
    lines = printed(tensors_text(state)).splitlines()
    assert len(lines) == 3001
    assert lines[0].split() == ["Tensor", "Shape", "Type", "Elements", "Bytes"]
    assert lines[1500].split() == [r"layer.1499\x1b[31m.w", "2x1499", "float32", "2,998", "12.0", "kB"]
    assert lines[1500].index("float32") == lines[3000].index("float32") == lines[0].index("Type")
