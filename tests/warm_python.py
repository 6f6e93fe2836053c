"""A Python that has torch in memory already: what the tests start in a process of its own is a fork of it.

Importing torch and torchvision takes three seconds of a processor, and a hundred tests run somebody's own code in a new
process. The fixture `warm_python` gives them one that is there at once: a process, a session and a group of its own,
its own folder, arguments, environment and standard output, ended by the same signals, and none of this package in it.
What it has beyond a new Python are torch's modules. Each file that uses it runs a few of its tests without, too.

    python tests/warm_python.py FD      the process that is forked; FD is the socket it is asked through
"""

from __future__ import annotations

import array
import gc
import json
import os
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

_LENGTH = 8  # bytes


class WarmPython:
    """The process that is forked. It is started by the first request and ends with whoever started it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str], *, cwd: Path, **streams: object) -> Child:
        """Instead of subprocess.Popen([sys.executable, "-c", text, *arguments], cwd=...), streams as `_STREAMS`."""
        assert command[:2] == [sys.executable, "-c"] and streams == _STREAMS
        request = {"text": command[2], "argv": ["-c", *command[3:]], "cwd": str(cwd), "environ": dict(os.environ)}
        payload = json.dumps(request).encode()
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        with self._lock, theirs:
            asking = self._asking or self._open()
            fds = array.array("i", [theirs.fileno(), writing])
            asking.sendmsg([len(payload).to_bytes(_LENGTH)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            asking.sendall(payload)
        os.close(writing)
        return Child(command, ours, reading)

    def run(self, text: str, *arguments: str, cwd: Path) -> str:
        """What it prints, when it ended well."""
        child = self.start([sys.executable, "-c", text, *arguments], cwd=cwd, **_STREAMS)
        with child.stdout:
            said = child.stdout.read().decode()
        assert child.wait() == 0, said
        return said

    def close(self) -> None:
        if self._asking is not None and self._server is not None:
            self._asking.close()
            self._server.wait()

    def _open(self) -> socket.socket:
        self._asking, theirs = socket.socketpair()
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        return self._asking


_STREAMS = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.STDOUT,
    "start_new_session": True,
}


class Child:
    """What of subprocess.Popen is used of it."""

    def __init__(self, command: Sequence[str], answers: socket.socket, reading: int) -> None:
        self._command = command
        self._answers = answers.makefile("r", encoding="ascii")
        answers.close()
        self.pid = int(self._answers.readline())
        self.stdout = os.fdopen(reading, "rb", buffering=0)
        self.returncode: int | None = None
        self._ended = threading.Thread(target=self._await, daemon=True)
        self._ended.start()

    def _await(self) -> None:
        self.returncode = int(self._answers.readline())
        self._answers.close()

    def wait(self, timeout: float | None = None) -> int:
        self._ended.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(list(self._command), timeout or 0.0)
        return self.returncode


def as_subprocess(warm: WarmPython) -> types.SimpleNamespace:
    """The module `subprocess` for a file that starts Python by it."""
    return types.SimpleNamespace(**{**vars(subprocess), "Popen": warm.start})


def serve(asked: socket.socket) -> None:
    """Fork for each request, until whoever asks has gone."""
    import safetensors.torch  # noqa: F401
    import thop  # noqa: F401
    import torchvision  # noqa: F401

    # A fork would copy what it searches for garbage.
    gc.collect()
    gc.freeze()
    while True:
        head, ancillary, _, _ = asked.recvmsg(_LENGTH, socket.CMSG_SPACE(2 * array.array("i").itemsize))
        if not head:
            return
        fds = array.array("i")
        fds.frombytes(ancillary[0][2])
        payload = b""
        length = int.from_bytes(head)
        while len(payload) < length:
            payload += asked.recv(length - len(payload))
        keeper = os.fork()
        if not keeper:
            asked.close()
            _keep(json.loads(payload), *fds)
        for fd in fds:
            os.close(fd)
        _collect()


def _collect() -> None:
    """Those who have kept their child to its end."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _keep(request: Mapping[str, Any], answers: int, output: int) -> NoReturn:
    """Start the child, say its number, wait for it, say how it ended."""
    pid = os.fork()
    if not pid:
        os.close(answers)
        _run(request, output)
    os.close(output)
    os.write(answers, b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    os.write(answers, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _run(request: Mapping[str, Any], output: int) -> NoReturn:
    """What `python -c` does."""
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = request["argv"]
    sys.path[0] = ""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    code = 0
    try:
        exec(compile(request["text"], "<string>", "exec"), vars(main))
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - nobody is above it
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
    # Taking torch apart takes a second, and nothing here is to be kept.
    os._exit(0)
