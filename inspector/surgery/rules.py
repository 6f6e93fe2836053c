"""What the steps of a surgery are to the plan and its code: rules that nobody proposes, since a person says them."""

from __future__ import annotations

from inspector.keys.report import Cost, RuleUse
from inspector.keys.rules.entry import Phrase, Renames, Rule


def _phrases(use: RuleUse) -> tuple[Phrase, ...]:
    prefix = dict(use.parameters).get("prefix", "")
    if not prefix:
        return ()
    return (Phrase(f"key = key.removeprefix({prefix!r})", lambda key: key.removeprefix(prefix)),)


DROP = Rule(
    id="drop-module",
    title="Module left out",
    says="Leaves out a module with everything below it.",
    cost=Cost.LOSSY,
    done="a module is left out",
)
EXTRACT = Rule(
    id="extract-module",
    title="Module taken out alone",
    says="Keeps one module alone, under the names it has in itself.",
    cost=Cost.LOSSY,
    done="a module is taken out alone",
    renames=Renames.LEVELS,
    phrases=_phrases,
)
HEAD = Rule(
    id="new-head",
    title="New head",
    says="Puts a layer for another number of classes in the place of a head.",
    cost=Cost.LOSSY,
    done="a head is new, to be trained",
)
RULES = (DROP, EXTRACT, HEAD)
