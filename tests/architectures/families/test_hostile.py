"""Names and shapes that nobody's model has, through every family: an answer or none, never an exception."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.architectures.families import FAMILIES
from inspector.architectures.families.match import find_families
from inspector.architectures.families.template import template_of

# Forms of real names, so that the numbers in them reach the counts and the arithmetic.
FORMS = sorted({line.form for family in FAMILIES for line in template_of(family, False).lines})
NUMBERS = st.sampled_from(["0", "1", "2", "7", "007", "40000", "9" * 9, "9" * 10, "1" * 400, "٣", "²", "-1", ""])
SIZES = st.lists(st.sampled_from([0, 1, 3, 64, 2**31, 2**62, 2**63 - 1]), max_size=5).map(tuple)


@st.composite
def name(draw: st.DrawFn) -> str:
    pieces = draw(st.sampled_from(FORMS)).split("#")
    text = pieces[0]
    for piece in pieces[1:]:
        text += draw(NUMBERS) + piece
    return draw(st.sampled_from(["", "module.", "a." * 40, "🙂."])) + text


@settings(deadline=None, derandomize=True)
@given(st.dictionaries(name(), SIZES, min_size=1, max_size=40))
def test_no_family_fails_on_strange_names_and_sizes(shapes: dict[str, tuple[int, ...]]) -> None:
    for found in find_families(shapes, FAMILIES):
        assert 0 < len(found.candidate.matched) <= len(shapes)


def test_a_million_digits_and_a_far_index_are_no_layers() -> None:
    layer = "encoder.layer.{}.attention.self.query.weight"
    shapes = {layer.format(i): (8, 8) for i in ("0", "1", "9" * 9, "9" * 1_000_000, "123456789")}
    for found in find_families(shapes, FAMILIES):
        assert len(found.candidate.missing) < 1_000
