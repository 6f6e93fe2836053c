"""What the numbers of a file say of the questions of its diagnosis, open or answered.

For each option the plan is made that follows from it, by names and shapes; a witness looks at the tensors that it
would make. Nothing is answered here, and no question is made or taken away: a statement stands beside its question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from inspector.architectures.types import Target
from inspector.checkpoint.raw_tensor import RawTensor, read_raw
from inspector.checkpoint.types import Checkpoint
from inspector.errors import InspectorError
from inspector.keys.apply import state_of
from inspector.keys.diagnose import diagnose
from inspector.keys.report import TARGET, WHICH_STATE, Ambiguity, RepairPlan
from inspector.keys.witnesses import WITNESSES
from inspector.keys.witnesses.entry import Scene, Witness
from inspector.keys.witnesses.types import Statement

_Ask = Callable[[Mapping[str, str]], RepairPlan | None]


def hear(
    checkpoint: Checkpoint, plan: RepairPlan, target: Target, *, witnesses: Sequence[Witness] = WITNESSES
) -> tuple[Statement, ...]:
    """One statement per question and witness that has something to say.

    Reads the tensors that a question is about and what stands beside them, a layer at a time; nothing where no question
    is of such a kind. Numbers that are not finite, pruned, or of eight bits and fewer say nothing.
    """
    if not may_be_heard(plan, witnesses):
        return ()
    state = state_of(checkpoint, plan)
    infos = {t.name: t for t in state.tensors}
    answers = {ident: option for ident, option in plan.chosen if ident != WHICH_STATE}

    def ask(given: Mapping[str, str]) -> RepairPlan | None:
        try:
            return diagnose(checkpoint, target, state=state, choose=given, partial=plan.partial).plan
        except InspectorError:
            return None  # One of the answers is to what is not asked then.

    def read(source: str) -> RawTensor:
        return read_raw(checkpoint, infos[source])

    heard: list[Statement] = []
    for question, chosen in _questions(plan, answers, ask, witnesses):
        found = {option: ask({**answers, question.id: option}) for option, _ in question.options}
        plans = {o: {s.target: s for s in p.steps if s.target is not None} for o, p in found.items() if p is not None}
        if len(plans) < 2:
            continue
        scene = Scene(question=question, target=target, plans=plans, names=tuple(infos), read=read)
        for witness in witnesses:
            if _is_about(witness, question.id):
                said = witness.listens(scene)
                scene.forget()
                heard += [replace(said, chosen=chosen)] if said is not None and not said.is_silent else []
    return tuple(heard)


def may_be_heard(plan: RepairPlan, witnesses: Sequence[Witness] = WITNESSES) -> bool:
    """Whether any question of it, open or answered, is one that a witness is asked about. Reads nothing."""
    idents = [q.id for q in plan.ambiguities if q.side != TARGET] + [ident for ident, _ in plan.chosen]
    return any(_is_about(witness, ident) for ident in idents for witness in witnesses)


def _is_about(witness: Witness, ident: str) -> bool:
    return ident.partition(":")[0] in witness.questions


def _questions(
    plan: RepairPlan, answers: Mapping[str, str], ask: _Ask, witnesses: Sequence[Witness]
) -> Iterator[tuple[Ambiguity, str]]:
    """(question, what was chosen): the open ones, then the answered ones as they were put.

    What the target's code reads no number of the file shows: questions about its order are left out.
    """
    yield from ((question, "") for question in plan.ambiguities if question.side != TARGET)
    known = {question.id for question in plan.ambiguities}
    for ident, chosen in answers.items():
        if not any(_is_about(witness, ident) for witness in witnesses):
            continue
        before = ask({key: answer for key, answer in answers.items() if key != ident})
        for question in before.ambiguities if before is not None else ():
            if ident not in known and chosen in dict(question.options) and _is_to(ident, question):
                known.add(ident)
                if question.side != TARGET:
                    yield replace(question, id=ident), chosen


def _is_to(ident: str, question: Ambiguity) -> bool:
    """Whether an answer under this id is to this question: to all of it, or at one of its places."""
    return ident == question.id or any(ident == question.at(place) for place in question.places)
