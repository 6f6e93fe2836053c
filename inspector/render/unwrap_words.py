"""What is decided before the weights are written alone, in the words of the app and of the page without a server."""

from __future__ import annotations

from inspector.units import counted

PREFIX_HELP = "The names do not tell. Your model does: print(*model.state_dict()) has it in front, or has not."


def prefix_question(shared: tuple[str, ...]) -> str:
    """shared: what every name begins with, the longest last."""
    return f'Every key begins with "{shared[-1]}.": a wrapper of somebody\'s own, or a part of your network?'


def prefix_answer(prefix: str) -> str:
    """prefix: "" where it stays."""
    return f'Drop "{prefix}."' if prefix else "Keep it: the network has it"


def salvage_label(cut: int) -> str:
    return f"A part is enough: leave out {counted(cut, 'tensor')} that the file does not hold whole"
