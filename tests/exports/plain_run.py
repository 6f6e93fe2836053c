"""Do the jobs of a list where torch and all that comes with it are missing: run by test_plain.py, in its own process.

The list is JSON: what to open, which plan, where to write. What became of each is printed as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

# As in test_wheel.py: what a plain installation does not have.
BLOCKED = ("torch", "torchvision", "safetensors", "streamlit", "pandas", "plotly", "PIL", "cv2", "thop", "timm", "peft")


def do(job: dict) -> dict:
    from inspector.architectures.targets import parse_target
    from inspector.errors import InspectorError
    from inspector.exports.convert import export_as_is
    from inspector.exports.export import export_repaired
    from inspector.exports.merge import merge_adapter
    from inspector.keys.diagnose import diagnose
    from inspector.readers import open_checkpoint

    checkpoint, out, options = open_checkpoint(job["file"]), Path(job["out"]), job["options"]
    try:
        if job["target"]:
            target = parse_target(f"file:{job['target']}", open_file=open_checkpoint)
            plan = diagnose(checkpoint, target, accept=job["accept"], choose=job["choose"]).plan
            report = export_repaired(checkpoint, plan, target, out, **options)
        elif job["adapter"]:
            report = merge_adapter(checkpoint, open_checkpoint(job["adapter"]), {}, out, **options)
        else:
            report = export_as_is(checkpoint, checkpoint.weights, out, **options)
    except InspectorError as error:
        return {"error": type(error).__name__, "says": str(error), "there": out.exists()}
    return {
        "sha256": [file.sha256 for file in report.files],
        "lost": list(report.lost),
        "cast": report.cast.says if report.cast is not None else "",
        "proofs": {proof.id: [proof.passed, proof.says] for proof in report.verification.proofs},
    }


def main() -> None:
    jobs = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    done = [do(job) for job in jobs]
    print(json.dumps(done))


if __name__ == "__main__":
    sys.modules.update(dict.fromkeys(BLOCKED))  # type: ignore[arg-type]
    main()
