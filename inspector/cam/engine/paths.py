"""Which steps of a forward pass the answer comes from, read off autograd's graph."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.autograd.graph import Node


def paths_of(answers: Sequence[Tensor], start: Tensor) -> tuple[set[Node], set[Node]]:
    """(nodes on a path from `start` to an answer, those of them that every such path goes through).

    start: a tensor that is no leaf. Linear in the graph.
    """
    first = start.grad_fn
    roots = [answer.grad_fn for answer in answers if answer.grad_fn is not None]
    if first is None:
        return set(), set()
    before, order = _inputs_first(roots)
    reached: set[Node] = set()
    for node in order:
        if node is first or any(other in reached for other in before[node]):
            reached.add(node)
    steps = [node for node in order if node in reached]
    place = {node: number for number, node in enumerate(steps)}
    # An edge spans the steps between its ends: whatever is computed in one of those is not all that goes on.
    spans = [0] * (len(steps) + 1)
    edges = [(place[other], place[node]) for node in steps for other in before[node] if other in reached]
    for low, high in [*edges, *((place[root], len(steps)) for root in roots if root in reached)]:
        spans[low + 1] += 1
        spans[high] -= 1
    alone, open_edges = set(), 0
    for node, change in zip(steps, spans, strict=False):
        open_edges += change
        if open_edges == 0:
            alone.add(node)
    return reached, alone


def forerunners(answers: Sequence[Tensor], marked: Sequence[Node | None]) -> list[int]:
    """For each marked node which others it comes from: bit n stands for the n-th. Linear in the graph."""
    numbers = {node: number for number, node in enumerate(marked) if node is not None}
    before, order = _inputs_first([answer.grad_fn for answer in answers if answer.grad_fn is not None])
    behind: dict[Node, int] = {}
    for node in order:
        bits = 0
        for other in before[node]:
            bits |= behind[other] | (1 << numbers[other] if other in numbers else 0)
        behind[node] = bits
    return [0 if node is None else behind.get(node, 0) for node in marked]


def _inputs_first(roots: Sequence[Node]) -> tuple[dict[Node, list[Node]], list[Node]]:
    """(what each node gets its inputs from, all nodes so that these come before it)."""
    before: dict[Node, list[Node]] = {}
    order: list[Node] = []
    stack = [(root, False) for root in roots]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in before:
            before[node] = [other for other, _ in node.next_functions if other is not None]
            stack.append((node, True))
            stack.extend((other, False) for other in before[node] if other not in before)
    return before, order
