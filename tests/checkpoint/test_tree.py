"""The tree that names spell, against the plainest way to spell it; and its bounds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.checkpoint.tree import TreeRoom, module_tree
from inspector.checkpoint.types import ModuleNode, TensorInfo


def _tensor(name: str) -> TensorInfo:
    return TensorInfo(name=name, path=(name,), shape=(1,), dtype="float32", nbytes=4, storage_id=None)


def _places(node: ModuleNode, segments: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    """(segments of the module, name of the tensor), module by module."""
    assert node.path == ".".join(segments)
    found = [(segments, tensor.name) for tensor in node.tensors]
    for child in node.children:
        found += _places(child, (*segments, child.name))
    return found


@settings(deadline=None)
@given(st.lists(st.text("ab.", max_size=6), max_size=12, unique=True))
def test_every_tensor_is_where_its_name_says(names: list[str]) -> None:
    tree = module_tree([_tensor(name) for name in names])
    expected = {name: tuple(name.split(".")[:-1]) for name in names}
    places = _places(tree)
    assert len(places) == len(names)
    assert {name: segments for segments, name in places} == expected
    # Tensors of a module are in file order.
    for segments in set(expected.values()):
        assert [n for s, n in places if s == segments] == [n for n in names if expected[n] == segments]


def test_a_leading_dot_is_a_module_without_a_name() -> None:
    tree = module_tree([_tensor(name) for name in ("w", ".w", "a.w", "b", "..w")])
    assert _places(tree) == [((), "w"), ((), "b"), (("",), ".w"), (("", ""), "..w"), (("a",), "a.w")]


def test_what_has_no_room_stays_where_there_is_some() -> None:
    room = TreeRoom(0)
    room.modules = 2
    tree = module_tree([_tensor(name) for name in ("a.b.c.w", "a.b.c.v", "a.x.w", "a.b.w")], room)
    assert _places(tree) == [
        (("a",), "a.x.w"),
        (("a", "b"), "a.b.c.w"),
        (("a", "b"), "a.b.c.v"),
        (("a", "b"), "a.b.w"),
    ]


def test_a_name_of_a_thousand_segments_makes_sixty_four() -> None:
    node = module_tree([_tensor("a." * 1000 + "w")])
    depth = 0
    while node.children:
        (node,) = node.children
        depth += 1
    assert depth == 64
    assert len(node.tensors) == 1
