"""Do the numbers agree that each tensor stands in its place? Batch norms remember what came before them.

Names and shapes say nothing of that, nor does an answer that is finite and varied. What is proved, contradicted and
left open of each tensor is the certificate (`keys/certificate/`); this is its one line among the proofs.
"""

from __future__ import annotations

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.keys.certificate.types import NEVER_TRAINED, Certificate, Standing
from inspector.keys.report import Proof
from inspector.units import counted


def judge_places(certificate: Certificate | None) -> Proof | None:
    """Failed where a number speaks against a place; passed where some are proved and none speaks against any.

    None without a certificate: a network without batch norms has nothing that could testify.
    """
    if certificate is None:
        return None
    counts = {standing: certificate.count(standing) for standing in Standing}
    of = sum(1 for one in certificate.tensors if not is_bookkeeping(one.name))
    against = next((t for t in certificate.tensors if t.standing is Standing.CONTRADICTED), None)
    if certificate.contradicts:
        first = f"{against.name}: {against.reason}." if against is not None else certificate.broken[0]
        many = [counted(n, what) for n, what in _speaking(certificate) if n]
        says = f"The batch norms contradict {' and '.join(many)}. {first}"
        return Proof(id="places", says=says, passed=False)
    if not counts[Standing.PROVED]:
        return Proof(id="places", says=f"No place is proved by the numbers: {_why_none(certificate)}.", passed=None)
    by = "the graph tells the chains" if certificate.certain else "chains by the order of definition"
    says = (
        f"The batch norms prove {counts[Standing.PROVED]:,} of {counted(of, 'tensor')} in place and contradict none; "
        f"{of - counts[Standing.PROVED]:,} are left open. {certificate.held:,} of {certificate.chains:,} chains of "
        f"norm, kernel and next norm hold ({by}); chance of a false proof below {certificate.chance:g}."
    )
    return Proof(id="places", says=says, passed=True)


def _speaking(certificate: Certificate) -> tuple[tuple[int, str], ...]:
    return (certificate.count(Standing.CONTRADICTED), "tensor"), (len(certificate.broken), "chain")


def _why_none(certificate: Certificate) -> str:
    if not certificate.chains:
        if any(one.reason == NEVER_TRAINED for one in certificate.tensors):
            return "the batch norms' statistics were never trained"
        return "no batch norm, layer and next batch norm follow on each other"
    chains = f"of {counted(certificate.chains, 'chain')} of norm, kernel and next norm"
    if not certificate.held:
        return f"none {chains} holds, as in a network that was never trained"
    return f"{certificate.held:,} {chains} hold, which is too little to tell one place from another"
