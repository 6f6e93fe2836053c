"""The hostile sample is what it claims to be: torch's own unsafe load runs it, and the weights beside it are whole."""

import io
import pickletools
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch

from sample_models.hostile import CODE, COMMAND, MARKER, hostile_archive

ARRAYS = {
    "conv.weight": np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2),
    "bn.num_batches_tracked": np.array(7, dtype=np.int64),
}


@pytest.fixture
def archive():
    return hostile_archive(ARRAYS)


def test_making_it_twice_gives_the_same_bytes(archive):
    assert hostile_archive(ARRAYS) == archive


def test_it_calls_what_it_claims_and_nothing_else(archive):
    pickle = zipfile.ZipFile(io.BytesIO(archive)).read("hostile/data.pkl")
    opcodes = [(opcode.name, argument) for opcode, argument, _ in pickletools.genops(pickle)]
    named = {argument for name, argument in opcodes if name == "GLOBAL"}
    assert named - {"collections OrderedDict", "torch._utils _rebuild_tensor_v2"} == {
        "os system",
        "builtins exec",
        "torch FloatStorage",
        "torch LongStorage",
    }
    texts = [argument for name, argument in opcodes if name == "BINUNICODE"]
    assert COMMAND in texts and CODE in texts


def test_a_careless_load_runs_it_and_finds_the_weights(archive, tmp_path):
    # In a process and folder of its own: this is the one place where the payload is meant to run.
    (tmp_path / "hostile.pth").write_bytes(archive)
    code = (
        "import torch; c = torch.load('hostile.pth', weights_only=False); s = c['state_dict'];"
        "print(sorted(c), s['conv.weight'].sum().item(), tuple(s['conv.weight'].shape), s['bn.num_batches_tracked'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ("['config', 'epoch', 'state_dict', 'transform'] 276.0 (2, 3, 2, 2) tensor(7)")
    assert (tmp_path / MARKER).read_text().splitlines() == [
        "a command inside the checkpoint ran",
        "code inside the checkpoint ran",
    ]


def test_torch_refuses_it_when_asked_for_weights_only(archive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match=r"os\.system|posix\.system"):
        torch.load(io.BytesIO(archive), weights_only=True)
    assert not (tmp_path / MARKER).exists()
