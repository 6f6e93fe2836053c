"""Writes the lists in docs/ from the entries themselves, so that they cannot drift apart.

python scripts/build_docs.py            write them
python scripts/build_docs.py --check    exit with 1 if they are out of date
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from catalogue import CATALOGUE, tally
from finding_kinds import finding_kinds
from health_page import health_page
from private_addresses import addresses_page
from public_names import python_page
from report_schema import report_schema
from route_headers import headers_page
from sessions import with_sessions

from inspector.cam.methods import METHODS
from inspector.cam.trust.measures import MEASURES
from inspector.compare.merges import BLEND, MERGE
from inspector.compare.relatives import RELATIVES
from inspector.compare.verdicts import VERDICTS
from inspector.doctor.causes.entry import KINDS
from inspector.exports.writers import WRITERS
from inspector.file_report.report import VERSION
from inspector.keys.inner_orders import INNER_ORDERS
from inspector.keys.operations import OPERATIONS
from inspector.keys.placing.provenance import LIBRARIES, Library
from inspector.keys.rules import RULES
from inspector.readers import FOLDER_READERS, READERS
from inspector.web.front.variables import VARIABLES, Variable

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
_VARIABLES = re.compile(r"(<!-- variables: written by scripts/build_docs.py -->).*?(<!-- end -->)", re.DOTALL)
NOTE = "<!-- Written by scripts/build_docs.py from the entries in the code: `make docs` renews it. -->"


def pages() -> dict[str, str]:
    """File name -> text of every generated page."""
    return {
        "../README.md": with_sessions((ROOT / "README.md").read_text(encoding="utf-8")),
        "commands.md": _with_variables((DOCS / "commands.md").read_text(encoding="utf-8")),
        "operating.md": _with_variables((DOCS / "operating.md").read_text(encoding="utf-8")),
        "headers.md": headers_page(),
        "addresses.md": f"{NOTE}\n{addresses_page()}",
        f"schema/report-{VERSION}.json": report_schema(),
        "python.md": f"{NOTE}\n{python_page()}",
        "formats.md": _page(
            "Formats",
            "What `open` reads, in the order in which it is tried. The content decides, never the name. Nothing in a "
            "file is executed; tensor bytes stay in the file until somebody asks for them.",
            ("Id", "Format", "Usual endings, or files"),
            (
                *((r.id, r.says, " ".join(r.suffixes)) for r in READERS),
                *((r.id, r.says, r.layout) for r in FOLDER_READERS),
            ),
        ),
        "findings.md": _page(
            "Findings",
            "Every kind of finding by its id, as `--json`, `scan` and `check` name it. Its sentence says what was "
            "measured.",
            ("Id", "Severity", "Title", "Made by"),
            (
                (
                    kind.id,
                    ", ".join(sorted((kind.severity, *kind.also), key=lambda severity: severity.rank)),
                    kind.title,
                    ", ".join(sorted(parts)),
                )
                for kind, parts in finding_kinds().items()
            ),
        ),
        "causes.md": _page(
            "Causes of a failed forward",
            "What `trace` names as a cause. `certain` means that the shapes, types or names which were seen, or a "
            "changed input that was tried and ran through, leave no other; `likely` that they allow one. What none of "
            "them knows is `unknown`, with where it was and which shapes came as far.",
            ("Id", "Told when"),
            KINDS.items(),
        ),
        "health.md": f"{NOTE}\n{health_page()}",
        "rules.md": _page(
            "Repair rules",
            "In the order in which they are asked. A rule fires only if the target lacks what it takes away and the "
            "result lands on a target key of the right shape. Lossy rules are applied only when `--accept ID` says so.",
            ("Id", "Cost", "What it does, and when"),
            ((r.id, r.cost.value, r.says) for r in RULES),
        ),
        "libraries.md": _page(
            "Libraries told by their names",
            "What proves which library wrote a file's or a target's names: one pattern of the first column, or two of "
            "the second, in names with every number as 0. Two libraries at once prove nothing. Where it is proved, the "
            "layout of that library's own names is not asked about.",
            ("Id", "Library", "One is enough", "Two are needed", "Stores"),
            (
                (
                    library.id,
                    library.title,
                    _patterns(library.alone),
                    _patterns(library.tokens),
                    _stores(library),
                )
                for library in LIBRARIES
            ),
        )
        + "\n## Orders inside one tensor\n\nOne name, one shape, other numbers: where the names of both sides prove "
        "their orders, the rule `inner-order` puts one into the other, or leaves them; where one side is proved and "
        "the tensor gets another code's name, it asks.\n\n"
        + "\n".join(
            f"- `{order.id}`: {'; or '.join(way.says for way in order.ways)}. Source: {order.source}."
            for order in INNER_ORDERS
        )
        + "\n",
        "catalogue.md": _page(
            "Mismatches",
            "Every known way in which a file and a model miss each other, and what becomes of it at best; where two "
            "ways fit, whatever would be repaired is asked about. Each class has a test of its number in tests/keys/. "
            + ", ".join(f"{count} {outcome.value}" for outcome, count in tally().items())
            + f": {len(CATALOGUE)} in all.",
            ("Class", "What it is", "Here it is", "By"),
            ((str(entry.number), entry.what, entry.outcome.value, entry.by) for entry in CATALOGUE),
        ),
        "methods.md": _page(
            "Methods of explanation",
            "Most methods are arithmetic on the activation and gradient of a captured layer, so that any number of "
            "them comes from one forward and one backward; the others run the model again. measurements.md "
            "says how much of each one's heat lies on the object, and which are no better than maps that know nothing. "
            "Measures of trust stand in measures.md.",
            ("Id", "Method", "What the map shows", "Source"),
            ((m.id, m.title, m.says, m.paper) for m in METHODS),
        ),
        "measures.md": _page(
            "Measures of trust",
            "Every measure is taken of the map and of three kinds that know nothing of the model: noise on the "
            "layer's grid (eight draws, every other one smooth: their mean, and the standard deviation of one), a "
            "Gaussian in the middle, and the edges of the picture. A number tells a map from noise where it is "
            "more than three standard deviations from the mean; one that is only 0 or 1 never does. Whether the "
            "map as a whole is better than noise is one test: one to four rectangles of the picture are covered, 256 "
            "times by a blur and 256 times by the mean colour, and the correlation of the answer with the heat left in "
            "sight, above or below the map's mean (Bhatt 2020, arXiv 2005.00631), must be reached by at most 4 % of "
            "499 random maps, of rough and of smooth ones each, which cost no passes; so at most 5 % of maps of noise "
            "pass. Where the odds of the lowest and the highest of these answers differ by less than four times (of "
            "plain numbers: where they differ by less than 5 %), the answer hardly depends on the picture and no "
            "measure says anything. Beside them stand the randomisation test (Adebayo 2018, arXiv 1810.03292), "
            "which is void where the map made twice of the unchanged model has a rank correlation below 0.99 with "
            "itself, and, where a mask is given, the pointing game and the energy inside it.",
            ("Id", "Measure", "What it says", "Better", "Source"),
            (
                (m.id, m.title, m.says, {True: "more", False: "less", None: "neither"}[m.higher], m.paper)
                for m in MEASURES
            ),
        ),
        "verdicts.md": _page(
            "Verdicts of a comparison",
            "What `diff` says of two files as a whole, the cheap and exact first. Each names its test, its number and "
            "what would refute it (`--json`). None says which file came first, or that one was made from the other.",
            ("Id", "Verdict", "Said when"),
            (*((entry.id, entry.title, entry.says) for entry in (*VERDICTS, *RELATIVES)), MERGE, BLEND),
        ),
        "exports.md": _page(
            "Formats that are written",
            "Every file is written beside its destination, one tensor in memory at a time, read back by our own reader "
            "and by the format's own library, compared bit for bit with the source (where `--dtype` casts, with the "
            "numbers after the cast), and only then given its name. With "
            "`--shard-size` it is a folder of shards with an index, as Hugging Face writes it, and named as a whole. "
            "`repair` writes a target's names, `convert` the file's own, `merge` a base with a LoRA adapter in it.\n\n"
            "Without torch the same bytes are written, by NumPy alone, and proved by everything that takes no model: a "
            "strict load, a forward pass and the format's own library are then said to be not tried. What only torch "
            "works out is refused before anything is written: "
            + ", ".join(f"`{operation.id}`" for operation in OPERATIONS if operation.by_torch)
            + ", `merge`, `--with-optimizer`, `--reference`, `--pair` and targets of `code:`.",
            ("Id", "Ending", "What it is"),
            ((w.id, w.suffix, w.says) for w in WRITERS),
        ),
    }


def _with_variables(text: str) -> str:
    """The page with the table of what an operator sets between its marks."""
    rows = [_row((f"`{one.name}`", one.says, _default(one))) for one in VARIABLES]
    table = "\n".join([_row(("Variable", "Meaning", "Default")), _row(["---"] * 3), *rows])
    made, count = _VARIABLES.subn(lambda marks: f"{marks[1]}\n{table}\n{marks[2]}", text)
    if count != 1:
        raise ValueError("A page needs one place for the table of variables.")
    return made


def _default(variable: Variable) -> str:
    return f"{int(variable.default):,}" if variable.least is not None else variable.default


def _page(title: str, intro: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [NOTE, f"# {title}", "", intro, "", _row(columns), _row(["---"] * len(columns))]
    lines += [_row([f"`{row[0]}`", *row[1:]]) for row in rows]
    return "\n".join(lines) + "\n"


def _stores(library: Library) -> str:
    """What of its layouts is not torch's."""
    matrices = ["matrices (in, out)"] if library.in_out else []
    kernels = [library.kernels] if library.kernels else []
    projections = [f"{_patterns([library.projections])} (in, out)"] if library.projections else []
    return ", ".join([*matrices, *kernels, *projections])


def _patterns(patterns: Iterable[str]) -> str:
    return " ".join(f"`{pattern}`" for pattern in patterns)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main(arguments: Sequence[str]) -> int:
    """Write or check."""
    DOCS.mkdir(exist_ok=True)
    made = pages()
    stale = [name for name, text in made.items() if _old(name) != text]
    if "--check" in arguments:
        if stale:
            print(f"Out of date: {', '.join(stale)}. Run `make docs`.")
        return int(bool(stale))
    for name in stale:
        (DOCS / name).write_text(made[name], encoding="utf-8")
    print(f"Wrote {', '.join(stale) or 'nothing: all are up to date'}.")
    return 0


def _old(name: str) -> str:
    path = DOCS / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
