"""Where choices stand in the session that belong to one file, or to one file and picture: they outlive the page."""

from __future__ import annotations

from inspector.web.explain.pictures import Picture
from inspector.web.session import Hand


def method_slot(hand: Hand) -> str:
    """Of the chosen method's id."""
    return f"method-{hand.sha256[:12]}"


def layer_slot(hand: Hand) -> str:
    """Of the chosen layer's name."""
    return f"layer-{hand.sha256[:12]}"


def class_slot(hand: Hand, picture: Picture) -> str:
    """Of the column of the answer that is asked about."""
    return f"class-{hand.sha256[:12]}-{picture.sha256[:12]}"


def beside_slot(hand: Hand, picture: Picture) -> str:
    """Of the column whose map stands beside the first one, None for none."""
    return f"beside-{hand.sha256[:12]}-{picture.sha256[:12]}"
