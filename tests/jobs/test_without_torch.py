"""The web process never imports torch: pages in a process of their own, all of the work in workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_models"
pytestmark = pytest.mark.xdist_group("workers")

_VISIT = """
import json, sys
from pathlib import Path
from streamlit.runtime.scriptrunner import script_runner
from streamlit.testing.v1 import AppTest

root, file, picture = map(Path, sys.argv[1:])
script_runner._mpa_v1 = lambda path: exec(
    compile(Path(path).read_text(), path, "exec"), {"__name__": "__main__", "__file__": path}
)
from inspector.web import jobs, uploads
from inspector.web.explain.pictures import Picture
from inspector.web.session import Hand

stored = uploads.the_store().put_bytes(file.read_bytes(), name=file.name, owner="me")
app = AppTest.from_file(str(root / "ui.py"), default_timeout=200)
app.session_state["hand"] = Hand(sha256=stored.sha256, name=file.name)
app.session_state["picture"] = Picture(name=picture.name, data=picture.read_bytes())
said = {}
app.run()
LOOKED = ("overview", "contents", "tensors", "weights", "projector", "architecture")
for page in (*LOOKED, "explain", "evaluation", "compare", "repair", "convert"):
    app.switch_page(f"pages/{page}.py").run()
    for running in jobs.the_client().running():
        running.wait(100)
    app.run()
    said[page] = [str(e.value) for e in (*app.error, *app.exception)]
    if page == "explain":
        for part in ("Channels", "Can it be trusted?", "Several pictures", "A run"):
            next(w for w in app.get("button_group") if w.label == "More").set_value(part).run()
            said[part] = [str(e.value) for e in (*app.error, *app.exception)]
        next(w for w in app.get("button_group") if w.label == "View").set_value("For and against").run()
        said["signed"] = [str(e.value) for e in (*app.error, *app.exception)]
    if page in ("repair", "convert"):
        next(b for b in app.button if b.label == "Write and verify").click().run()
        for running in jobs.the_client().running():
            running.wait(100)
        app.run()
        said[page] += [str(e.value) for e in (*app.error, *app.exception)]
        drawn = "".join(element.proto.body for element in app.get("html"))
        said[f"{page} written"] = [] if "Read back from the file" in drawn else ["nothing"]
jobs.the_client().close()
print(json.dumps({"said": said, "torch": "torch" in sys.modules, "workers": jobs.the_client().settings.workers}))
"""


def test_no_page_brings_torch_into_the_web_process(tmp_path: Path) -> None:
    file, picture = SAMPLES / "files" / "shapes_dp.pth.tar", SAMPLES / "pictures" / "star_1.png"
    if not file.is_file():
        pytest.fail("The sample files are missing: python sample_models/build.py derive")
    environment = os.environ | {"INSPECTOR_STORE": str(tmp_path / "store"), "INSPECTOR_WORKERS": "2"}
    ran = subprocess.run(
        [sys.executable, "-c", _VISIT, str(ROOT), str(file), str(picture)],
        capture_output=True, text=True, cwd=ROOT, env=environment,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert {what: says for what, says in found["said"].items() if says} == {}
    assert found["workers"] == 2 and not found["torch"]
