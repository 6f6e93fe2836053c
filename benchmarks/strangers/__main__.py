"""Key mismatches that somebody thought up who knew the README and public threads alone, one outcome each.

    python -m benchmarks.strangers [--half a|b|all] [--out FILE] [--only ID,ID]

All cases are the denominator. Half b was kept from whoever works on the keys until its first figures were written down
(docs/measurements.md). Ends with 1 where anything was wrong in silence, or loaded that should have been asked about.
"""

import argparse
import collections
import dataclasses
import hashlib
import json
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import torch

from inspector import InspectorError, apply_plan, diagnose, export_repaired, open_checkpoint, parse_target

# What the command line does with code:model.py:build, in this process: starting one for each case takes seconds.
from inspector.architectures.code_runner import describe
from inspector.architectures.user_code import Factory, target_described

from . import renaming, tensors, traps, wrapping  # noqa: F401
from .base import CASES

warnings.filterwarnings("ignore")
OUTCOMES = (
    "right unasked",
    "right after truthful answers",
    "refused (named)",
    "asked-but-wrong",
    "silently wrong",
    "trap held",
    "trap failed silently",
)
MOST = 60  # diagnoses of one case
SECONDS = 15.0


def half_of(case_id):
    return "ab"[int(hashlib.sha256(case_id.encode()).hexdigest()[:8], 16) % 2]


def target_of_model(model):
    factory = Factory(text="code:model.py:build", where="model.py", name="build", is_file=True)
    return parse_target("code:model.py:build", run_code=lambda text: target_described(describe(model), factory))


def values_of(checkpoint, plan):
    """name -> tensor; what the plan leaves at its initial value is not in it."""
    initial = {s.target for s in plan.steps if s.kind.value == "fill" and s.value == "initial"}
    if initial:
        steps = tuple(s for s in plan.steps if s.target not in initial)
        plan = dataclasses.replace(plan, steps=steps, missing=(*plan.missing, *sorted(initial)), partial=True)
    return apply_plan(checkpoint, plan)


def close(a, b):
    a, b = torch.as_tensor(a).detach(), torch.as_tensor(b).detach()
    if a.shape != b.shape:
        return False
    a, b = a.double(), b.double()
    return torch.equal(a, b) or torch.allclose(a, b, rtol=1e-4, atol=1e-6)


def misfits(values, truth, model):
    """(name, what is wrong with it), where the repaired state is not the truth."""
    wrong, own = [], model.state_dict()
    for name, want in truth.items():
        wants = want if isinstance(want, tuple) else (want,)
        got = values.get(name)
        if got is None:
            if not any(w is None or close(w, own[name]) for w in wants):
                wrong.append((name, "left untrained, the file has it"))
        elif not any(close(got, own[name]) if w is None else close(got, w) for w in wants):
            wrong.append((name, "filled, should stay new" if wants == (None,) else "other values"))
    return wrong


def asked(report):
    """((question id, text, ((option, label)...), places)...), rules to accept."""
    plan = report.plan
    return (() if plan is None else plan.ambiguities), (() if plan is None else plan.needs_accept)


def no_like(option, label):
    return label.lower().startswith(("no", "leave", "neither", "none")) or option.startswith(
        ("leave", "none", "no-", "neither")
    )


class Search:
    """Every answer that is offered, until one leads to the truth."""

    def __init__(self, checkpoint, target, truth, model):
        self.checkpoint, self.target, self.truth, self.model = checkpoint, target, truth, model
        self.seen, self.wrong, self.refused, self.count, self.end = set(), [], [], 0, time.time() + SECONDS
        self.may_be_partial = any(v is None or isinstance(v, tuple) and None in v for v in truth.values())

    def tried(self, accept, choose, partial, report=None):
        key = (tuple(sorted(accept)), tuple(sorted(choose.items())), partial)
        if key in self.seen or self.count >= MOST or time.time() > self.end:
            return None
        self.seen.add(key)
        self.count += 1
        if report is None:
            try:
                report = diagnose(self.checkpoint, self.target, accept=accept, choose=choose, partial=partial)
            except InspectorError:
                return None
        plan = report.plan
        if plan is not None and plan.complete:
            try:
                bad = misfits(values_of(self.checkpoint, plan), self.truth, self.model)
            except InspectorError as error:
                self.refused.append(str(error))
                said = re.search(r"Choose ([\w-]+)=([\w-]+)", str(error))
                return self.tried(accept, {**choose, said[1]: said[2]}, partial) if said else None
            if not bad:
                return key
            self.wrong.append((key, bad[:2], len(bad)))
            # An accepted rule or "yes" may still leave questions that were answered by default: go on below.
        questions, rules = asked(report)
        for q in questions[:2]:
            known = any(k == q.id or k.startswith(q.id + ":") for k in choose)
            options = list(q.options)
            if not known:
                for option, _ in options:
                    found = self.tried(accept, {**choose, q.id: option}, partial)
                    if found:
                        return found
            if len(q.places) > 1:
                for place in q.places:
                    name = (
                        place
                        if isinstance(place, str)
                        else getattr(place, "id", None) or (place[0] if isinstance(place, tuple) else str(place))
                    )
                    if f"{q.id}:{name}" in choose:
                        continue
                    for option, _ in options:
                        found = self.tried(accept, {**choose, f"{q.id}:{name}": option}, partial)
                        if found:
                            return found
                    break
        more = [r for r in rules if r not in accept]
        if more:
            for add in [more] + ([[r] for r in more] if len(more) > 1 else []):
                found = self.tried((*accept, *add), choose, partial)
                if found:
                    return found
        if self.may_be_partial and not partial:
            return self.tried(accept, choose, True)
        return None


def run(case_id, kind, source, function, folder):
    line = {"id": case_id, "kind": kind, "half": half_of(case_id), "source": source}
    torch.manual_seed(0)
    state, model, truth = function()
    path = Path(folder) / f"{case_id}.pth"
    torch.save(state, path)
    start = time.time()
    trap = truth is None
    try:
        checkpoint, target = open_checkpoint(path), target_of_model(model)
        report = diagnose(checkpoint, target)
    except InspectorError as error:
        line |= {"outcome": "trap held" if trap else "refused (named)", "says": f"{type(error).__name__}: {error}"}
        return line
    except Exception:
        line |= {
            "outcome": "trap held" if trap else "refused (named)",
            "crash": True,
            "says": "CRASH " + traceback.format_exc(limit=-3),
        }
        return line
    questions, rules = asked(report)
    plan = report.plan
    line |= {
        "says": report.says,
        "refusal": report.refusal,
        "needs_accept": list(rules),
        "missing": len(plan.missing) if plan else None,
        "questions": [(q.id, q.question, [list(o) for o in q.options], len(q.places)) for q in questions],
    }
    complete = plan is not None and plan.complete
    bad = None
    if complete:
        try:
            values = values_of(checkpoint, plan)
        except InspectorError as error:
            line |= {"outcome": "trap held" if trap else "refused (named)", "at_writing": str(error)}
            return line
        bad = [("", "loads unasked")] if trap else misfits(values, truth, model)
        line["rules"] = [r.id for r in plan.rules]
    if complete and not bad:
        line["outcome"] = "right unasked"
    elif complete:
        line["wrong"], line["wrong_count"] = bad[:3], len(bad)
        # What the code: target would build in its own process, for the proofs at writing.
        torch.save(model, "model.pt")
        Path("model.py").write_text(
            f"import sys, torch\nsys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
            f"def build():\n    return torch.load({str(Path('model.pt').resolve())!r}, weights_only=False)\n"
        )
        try:
            export_repaired(checkpoint, plan, target, Path(folder) / f"{case_id}_out.pth")
            line["outcome"] = "trap failed silently" if trap else "silently wrong"
        except InspectorError as error:
            line |= {"outcome": "trap held" if trap else "refused (named)", "at_writing": str(error)}
        if not trap:
            line["others"] = [str(o) for o in plan.others]
    elif trap:
        line["outcome"] = "trap held"
    else:
        search = Search(checkpoint, target, truth, model)
        found = search.tried((), {}, False, report)
        line["diagnoses"] = search.count
        if found:
            line |= {
                "outcome": "right after truthful answers",
                "answers": {"accept": found[0], "choose": dict(found[1]), "partial": found[2]},
            }
        elif search.wrong:
            line["wrong_paths"] = [(list(k[0]), dict(k[1]), k[2], b, n) for k, b, n in search.wrong[:4]]
            # Who knows better can say no everywhere, or accept nothing.
            way_out = all(any(no_like(*o) for o in q.options) for q in questions) and (questions or rules)
            needs_no_yes = any(not k[1] or all(no_like(v, "") for v in dict(k[1]).values()) for k, _, _ in search.wrong)
            line["outcome"] = "refused (named)" if way_out and not needs_no_yes else "asked-but-wrong"
        else:
            line["outcome"] = "refused (named)"
        line["refused_at_writing"] = search.refused[:2]
        line["limit"] = search.count >= MOST or time.time() > search.end
    line["seconds"] = round(time.time() - start, 2)
    return line


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--half", choices=("a", "b", "all"), default="all")
    p.add_argument("--out")
    p.add_argument("--only", default="")
    a = p.parse_args()
    torch.set_num_threads(1)
    out = Path(a.out).resolve() if a.out else None
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for case_id, kind, source, function in CASES:
            if a.half in ("all", half_of(case_id)) and (not a.only or case_id in a.only.split(",")):
                lines.append(run(case_id, kind, source, function, folder))
                print(case_id, lines[-1]["outcome"], lines[-1].get("seconds"), file=sys.stderr, flush=True)
                if a.only:
                    print(json.dumps(lines[-1], indent=1, default=str))
        os.chdir("/")
    text = table(lines) + "\n" + "\n".join(json.dumps(x, default=str) for x in lines) + "\n"
    if out:
        out.write_text(text)
        print(table(lines))
    else:
        print(text)
    return int(any(x["outcome"] in ("silently wrong", "trap failed silently") for x in lines))


def table(lines):
    kinds = {}
    for x in lines:
        kinds.setdefault(x["kind"], collections.Counter())[x["outcome"]] += 1
    short = ("unasked", "answered", "refused", "ask-wrong", "SILENT", "held", "FAILED")
    rows = [f"{'kind':32}" + "".join(f"{s:>10}" for s in short)]
    rows += [f"{k:32}" + "".join(f"{c[o] or '':>10}" for o in OUTCOMES) for k, c in kinds.items()]
    total = collections.Counter(x["outcome"] for x in lines)
    rows += [f"{'all ' + str(len(lines)):32}" + "".join(f"{total[o]:>10}" for o in OUTCOMES)]
    rows += [f"{len(kinds)} kinds, {sum(x['outcome'].startswith('trap') for x in lines)} traps"]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
