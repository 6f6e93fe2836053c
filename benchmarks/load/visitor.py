"""A visitor without a browser: speaks Streamlit's own messages over its socket, so that two cores hold forty of them.

What a browser would do is done: widgets are set by their labels, fragments run again when the page says so, files go up
by the page's own route. Everything that arrives is searched for the names of others.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

TIMEOUT = 120.0
# Of a server that asks for a key.
TOKEN = "INSPECTOR_TOKEN"
_TOKEN = re.compile(r'"token"\s*:\s*"([0-9a-f]+\.[0-9a-f]{32})"')


class _StayHere(urllib.request.HTTPRedirectHandler):
    """A way on is an answer too: what is wanted is its cookie."""

    def http_error_303(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        return fp


class Failed(Exception):
    """Something that no visitor should meet."""


@dataclass
class Page:
    """What stands on the page now. elements: by their place in it, (type, the message)."""

    elements: dict[tuple[int, ...], tuple[str, Any]] = field(default_factory=dict)

    def find(self, kind: str, label: str) -> Any:
        for what, element in self.elements.values():
            if what == kind and getattr(element, "label", None) == label:
                return element
        raise Failed(f"there is no {kind} {label!r} on the page")

    def texts(self, kind: str) -> list[str]:
        return [str(getattr(e, "body", "") or e) for what, e in self.elements.values() if what == kind]


class Visitor:
    """number: of it. foreign: words of others that must never arrive here."""

    def __init__(self, port: int, number: int, foreign: list[str]) -> None:
        self.address = f"127.0.0.1:{port}"
        self.number = number
        self.foreign = [word.encode() for word in foreign]
        self.page = Page()
        self.pages: dict[str, str] = {}
        self.values: dict[str, dict[str, Any]] = {}
        self.query = ""
        self.token = ""
        self.reruns: dict[str, float] = {}
        self.here = ""
        self.cookies = ""
        self._session = ""
        self.map_seconds = 0.0
        self._asked = 0.0
        self._socket: ClientConnection | None = None
        self._known: dict[str, ForwardMsg] = {}

    # The socket.

    def open(self, query: dict[str, str] | None = None, page: str = "") -> None:
        self.close()
        if not self.cookies:
            self._enter()
        self._socket = connect(
            f"ws://{self.address}/_stcore/stream", subprotocols=["streamlit"],  # type: ignore[list-item]
            origin=f"http://{self.address}", max_size=None, open_timeout=TIMEOUT, proxy=None,
            # A page whose own program is busy answers no pings either.
            ping_interval=None, additional_headers={"Cookie": self.cookies},
        )  # fmt: skip
        self.here = ""
        self.query, self.page, self.values, self.reruns = urlencode(query or {}), Page(), {}, {}
        self._run(page_name=page)

    def _enter(self) -> None:
        """The cookies that a browser would have: of a server with a key, and of this visitor."""
        given: list[str] = []
        opener = urllib.request.build_opener(_StayHere)
        for query in (f"?token={os.environ[TOKEN]}", "") if os.environ.get(TOKEN) else ("",):
            asked = urllib.request.Request(f"http://{self.address}/{query}", headers={"Cookie": "; ".join(given)})
            with opener.open(asked, timeout=TIMEOUT) as answer:
                given += [one.partition(";")[0] for one in answer.headers.get_all("Set-Cookie") or []]
        self.cookies = "; ".join(given)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def go(self, page: str) -> None:
        """To another page, by its address."""
        self.page = Page()
        self._run(page_hash=self.pages[page])

    def click(self, label: str) -> None:
        self._trigger(self.page.find("button", label).id)

    def choose(self, kind: str, label: str, value: str) -> None:
        """A segmented control or a select box, by what its option says."""
        element = self.page.find(kind, label)
        if kind == "button_group":
            place = [option.content for option in element.options].index(value)
            self.values[element.id] = {"string_array_value": {"data": [value]}}
            del place
        else:
            self.values[element.id] = {"string_value": value}
        self._run()

    def until(self, there: Any, seconds: float = TIMEOUT) -> None:
        """Let fragments run again, as the page asks for, until `there(page)` is true."""
        end = time.monotonic() + seconds
        while not there(self.page):
            if time.monotonic() > end:
                raise Failed(f"waited {seconds:.0f} seconds")
            if not self.reruns:
                raise Failed("nothing more comes: " + "; ".join(self.page.texts("alert")))
            time.sleep(min(self.reruns.values()))
            self._run(fragment=next(iter(self.reruns)))

    def _trigger(self, widget: str) -> None:
        self.values[widget] = {"trigger_value": True}
        self._run()
        self.values.pop(widget, None)

    def _run(self, *, page_hash: str = "", page_name: str = "", fragment: str = "") -> None:
        message = BackMsg()
        state = message.rerun_script
        state.query_string = self.query
        state.page_script_hash = page_hash or self.here
        state.page_name = page_name
        state.fragment_id = fragment
        state.is_auto_rerun = bool(fragment)
        for widget, value in self.values.items():
            entry = state.widget_states.widgets.add(id=widget)
            for name, content in value.items():
                if isinstance(content, tuple):
                    file = getattr(entry, name).uploaded_file_info.add(file_id=content[2].file_id, name=content[0])
                    file.size = content[1]
                    file.file_urls.CopyFrom(content[2])
                elif isinstance(content, dict):
                    getattr(entry, name).data.extend(content["data"])
                else:
                    setattr(entry, name, content)
        assert self._socket is not None
        self._asked, self.map_seconds = time.monotonic(), 0.0
        self._socket.send(message.SerializeToString())
        self._read(bool(fragment))

    def _read(self, fragment: bool) -> None:
        assert self._socket is not None
        while True:
            data = self._socket.recv(TIMEOUT)
            assert isinstance(data, bytes)
            for word in self.foreign:
                if word in data:
                    raise Failed(f"something of another visitor arrived: {word.decode()}")
            message = ForwardMsg()
            message.ParseFromString(data)
            kind = message.WhichOneof("type")
            if kind == "ref_hash":
                message = self._known[message.ref_hash]
                kind = message.WhichOneof("type")
            elif message.hash:
                self._known[message.hash] = message
            if kind == "new_session":
                if not fragment:
                    self.page.elements.clear()
                    self.reruns.clear()
                self.here = message.new_session.page_script_hash
                self._session = message.new_session.initialize.session_id or self._session
            elif kind == "navigation":
                self.pages = {page.url_pathname: page.page_script_hash for page in message.navigation.app_pages}
                self.here = message.navigation.page_script_hash or self.here
            elif kind == "page_info_changed":
                self.query = message.page_info_changed.query_string
            elif kind == "auto_rerun":
                self.reruns[message.auto_rerun.fragment_id] = message.auto_rerun.interval
            elif kind == "stop_auto_rerun":
                self.reruns.pop(message.stop_auto_rerun.fragment_id, None)
            elif kind == "delta":
                self._draw(message)
            elif kind == "script_finished":
                # FINISHED_EARLY_FOR_RERUN: the page runs once more by itself.
                if message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    continue
                return

    def _draw(self, message: ForwardMsg) -> None:
        place = tuple(message.metadata.delta_path)
        if message.delta.WhichOneof("type") != "new_element":
            for known in [known for known in self.page.elements if known[: len(place)] == place]:
                del self.page.elements[known]
            return
        element = message.delta.new_element
        kind = element.WhichOneof("type")
        if kind is None or kind == "empty":
            self.page.elements.pop(place, None)
            return
        found = getattr(element, kind)
        self.page.elements[place] = (kind, found)
        if kind == "imgs" and not self.map_seconds and "Heat map overlay" in str(found):
            self.map_seconds = time.monotonic() - self._asked
        if kind == "exception":
            raise Failed(f"an exception on the page: {found.message[:200]}")
        if "token" in (text := str(found)):
            token = _TOKEN.search(text.replace('\\"', '"'))
            self.token = token[1] if token else self.token

    # Beside the socket.

    def upload(self, data: bytes | BinaryIO, name: str, nbytes: int = 0) -> str:
        """By the page's own route; its sha256. nbytes: of a file. Raises Failed with what the server says."""
        request = urllib.request.Request(
            f"http://{self.address}/inspector/upload", data=data, method="PUT",
            headers={"X-Inspector-Token": self.token, "X-File-Name": quote(name), "Origin": f"http://{self.address}",
                     "Cookie": self.cookies, **({"Content-Length": str(nbytes)} if nbytes else {})},
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return str(json.load(answer)["sha256"])
        except urllib.error.HTTPError as error:
            raise Failed(f"{error.code} {error.read(500).decode(errors='replace')}") from error
        except OSError as error:
            raise Failed(f"the upload was cut: {error}") from error

    def take(self, label: str, data: bytes, name: str) -> None:
        """A file into one of Streamlit's own boxes, as the browser does it."""
        box = self.page.find("file_uploader", label)
        message = BackMsg()
        message.file_urls_request.request_id = name
        message.file_urls_request.file_names.append(name)
        message.file_urls_request.session_id = self._session
        assert self._socket is not None
        self._socket.send(message.SerializeToString())
        answer = ForwardMsg()
        while answer.WhichOneof("type") != "file_urls_response":
            answer.ParseFromString(self._socket.recv(TIMEOUT))
        urls = answer.file_urls_response.file_urls[0]
        asked = urllib.request.Request(f"http://{self.address}/_stcore/health", headers={"Cookie": self.cookies})
        with urllib.request.urlopen(asked, timeout=TIMEOUT) as found:
            given = [one.partition(";")[0] for one in found.headers.get_all("Set-Cookie") or []]
        guard = next(one for one in given if one.startswith("_streamlit_xsrf="))
        border = secrets.token_hex(16)
        body = f'--{border}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
        request = urllib.request.Request(
            f"http://{self.address}{urls.upload_url}", data=body + data + f"\r\n--{border}--\r\n".encode(),
            method="PUT",
            headers={"Content-Type": f"multipart/form-data; boundary={border}", "Origin": f"http://{self.address}",
                     "Cookie": f"{self.cookies}; {guard}", "X-Xsrftoken": guard.partition("=")[2]},
        )  # fmt: skip
        urllib.request.urlopen(request, timeout=TIMEOUT).close()
        self.values[box.id] = {"file_uploader_state_value": (name, len(data), urls)}
        self._run()

    def download(self, path: str) -> bytes:
        headers = {"Cookie": self.cookies, "Accept-Encoding": "gzip, deflate, br"}  # as browsers do
        request = urllib.request.Request(f"http://{self.address}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            return bytes(answer.read())

    def has_map(self) -> bool:
        """Whether a heat map is drawn."""
        return any(kind == "imgs" and "Heat map overlay" in str(e) for kind, e in self.page.elements.values())

    def errors(self) -> list[str]:
        """What the page says in red."""
        return [str(e.body) for what, e in self.page.elements.values() if what == "alert" and e.format == 1]
