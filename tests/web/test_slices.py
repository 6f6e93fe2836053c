"""Slices of a file beside its upload: what was asked for, for its owner alone, gone with the upload, never believed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save
from starlette.applications import Starlette

from inspector.readers.header_look import MOST_NBYTES, first_ranges
from inspector.web import provisional, uploads
from inspector.web.front import probes
from inspector.web.front.paths import SLICES_PATH, UPLOAD_PATH
from inspector.web.front.variables import limits_from
from inspector.web.provisional import ProvisionalView, Uploads
from inspector.web.store import ContentStore
from tests.web.asgi_client import Answer, Client

NET = save({f"fc{i}.weight": np.zeros((100, 900), np.float32) for i in range(4)})
# Its header is longer than what is sent first.
LONG = save({"fc.weight": np.zeros((100, 900), np.float32)}, {"note": "x" * 200_000})
ID, OTHER = "0" * 32, "1" * 32


def head_and_end(data: bytes) -> bytes:
    return b"".join(data[offset : offset + n] for offset, n in first_ranges(len(data)))


class Visitor(Client):
    """Asks as the page does."""

    def slices(self, data: bytes, size: int, upload: str = ID, owner: str = "me", **headers: str) -> Answer:
        usual = {"X-Inspector-Token": uploads.issue_token(owner), "X-File-Name": "a%20b", "X-File-Size": str(size)}
        return self.ask("POST", SLICES_PATH, data, usual | {"X-Inspector-Upload": upload} | headers)

    def put(self, data: bytes, upload: str = ID, **headers: str) -> Answer:
        usual = {"X-Inspector-Token": uploads.issue_token("me"), "X-File-Name": "a%20b", "X-Inspector-Upload": upload}
        return self.ask("PUT", UPLOAD_PATH, data, usual | headers)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ContentStore:
    made = ContentStore(tmp_path, file_nbytes=3_000_000)
    monkeypatch.setattr(uploads, "the_store", lambda: made)
    monkeypatch.setattr(probes, "the_store", lambda: made)
    return made


@pytest.fixture
def held() -> Iterator[Uploads]:
    provisional.the_uploads.cache_clear()
    yield provisional.the_uploads()
    provisional.the_uploads.cache_clear()


@pytest.fixture
def client(store: ContentStore, held: Uploads, monkeypatch: pytest.MonkeyPatch) -> Visitor:
    monkeypatch.setattr(uploads, "_mounted", False)
    # The slices of a test come in few pieces.
    monkeypatch.setattr("tests.web.asgi_client._PIECE", 50_000)
    return Visitor(Starlette(routes=uploads.routes()))


def test_slices_become_a_view_of_their_owner_alone(client: Visitor, held: Uploads) -> None:
    assert json.loads(client.slices(head_and_end(NET), len(NET)).body) == {"shows": True}
    view = held.find("me", ID)
    assert view is not None and (view.name, view.nbytes, view.requests) == ("a b", len(NET), 1)
    assert [f.says for f in view.figures][-1] == "4"
    assert held.find("you", ID) is None and held.find("me", OTHER) is None
    assert held.held_nbytes == 0


def test_the_view_goes_with_the_upload_and_the_stored_bytes_count(
    client: Visitor, held: Uploads, store: ContentStore
) -> None:
    other = save({"only.weight": np.ones((100, 900), np.float32)})
    client.slices(head_and_end(NET), len(NET))
    answer = client.put(other)
    assert answer.status == 200
    assert held.find("me", ID) is None and len(held) == 0
    path = store.get_path(json.loads(answer.body)["sha256"])
    assert path is not None and path.read_bytes() == other
    # Nothing of the slices is in the store, under whatever name.
    assert [p.stat().st_size for p in store.root.rglob("*") if p.is_file() and p.suffix != ".json"] == [len(other)]


@pytest.mark.parametrize("headers", [{"Content-Length": "3000001"}, {"Origin": "http://elsewhere.test"}])
def test_a_refused_upload_takes_its_view_along(client: Visitor, held: Uploads, headers: dict[str, str]) -> None:
    client.slices(head_and_end(NET), len(NET))
    status = client.put(b"abc", **headers).status
    # Another site's request is not the upload: it takes nothing away.
    assert (status, len(held)) in ((413, 0), (403, 1))


def test_what_is_wanted_next_is_asked_for_and_nothing_else_is_taken(client: Visitor, held: Uploads) -> None:
    data = LONG
    (first,) = json.loads(client.slices(head_and_end(data), len(data)).body)["wants"]
    assert first[0] == 131_072 and sum(first) <= len(data) - 131_072
    assert held.find("me", ID) is None and held.held_nbytes == 262_144
    # Its bytes are taken without a place: only for what was asked for.
    answer = client.slices(data[first[0] : sum(first)], len(data))
    assert json.loads(answer.body) == {"shows": True}


@pytest.mark.parametrize("n", [0, 1, 262_143, 262_145, 400_000])
def test_too_much_or_too_little_is_refused_and_leaves_nothing(client: Visitor, held: Uploads, n: int) -> None:
    answer = client.slices(bytes(n), 1_000_000)
    assert answer.status == 400 and "262,144" in answer.says
    assert (len(held), held.held_nbytes) == (0, 0)


def test_another_size_in_the_middle_is_refused(client: Visitor, held: Uploads) -> None:
    data = LONG
    client.slices(head_and_end(data), len(data))
    assert client.slices(head_and_end(data), len(data) + 1).status == 400


@pytest.mark.parametrize("size", ["0", "-5", "x", "", "9" * 5000, "3000001"])
def test_a_size_that_is_none_or_over_the_limit_is_refused(client: Visitor, held: Uploads, size: str) -> None:
    answer = client.slices(b"", 1, **{"X-File-Size": size})
    assert answer.status in (400, 413)
    assert len(held) == 0


@pytest.mark.parametrize("upload", ["", "x", "../../etc", "0" * 31, "0" * 33, "G" * 32])
def test_an_upload_of_another_name_is_none_of_ours(client: Visitor, held: Uploads, upload: str) -> None:
    assert client.slices(head_and_end(NET), len(NET), upload).status == 400
    assert len(held) == 0


def test_token_and_origin_are_those_of_an_upload(client: Visitor, held: Uploads) -> None:
    assert client.slices(b"", len(NET), **{"X-Inspector-Token": "me.0"}).status == 403
    assert client.slices(b"", len(NET), Origin="http://elsewhere.test").status == 403
    assert len(held) == 0


def test_thousands_of_views_are_refused_and_others_have_room(client: Visitor, held: Uploads) -> None:
    statuses = [client.slices(head_and_end(NET), len(NET), f"{i:032x}").status for i in range(8)]
    assert statuses == [200] * 4 + [429] * 4
    assert client.slices(head_and_end(NET), len(NET), owner="you").status == 200


def test_all_visitors_together_have_a_limit() -> None:
    held = Uploads(most=3, most_each=2, idle_seconds=10)
    for owner in "abc":
        held.begin_round(owner, ID, name="n", size=9)
    with pytest.raises(Exception, match="Too many uploads"):
        held.begin_round("d", ID, name="n", size=9)
    held.end("a", ID)
    assert held.begin_round("d", ID, name="n", size=9) == 9


def test_without_more_slices_it_goes_unless_its_bytes_come() -> None:
    now = [0.0]
    held = Uploads(most=9, most_each=9, idle_seconds=10, clock=lambda: now[0])
    for upload in (ID, OTHER):
        held.begin_round("me", upload, name="n", size=len(NET))
        assert isinstance(held.end_round("me", upload, head_and_end(NET)), ProvisionalView)
    held.coming("me", OTHER)
    now[0] = 10.5
    held.sweep()
    assert held.find("me", ID) is None
    assert held.find("me", OTHER) is not None
    held.end("me", OTHER)
    assert len(held) == 0


def test_one_round_at_a_time() -> None:
    held = Uploads(most=9, most_each=9, idle_seconds=10)
    held.begin_round("me", ID, name="n", size=len(NET))
    with pytest.raises(Exception, match="asked for nothing now"):
        held.begin_round("me", ID, name="n", size=len(NET))


def test_what_an_upload_may_hold_is_bounded() -> None:
    held = Uploads(most=9, most_each=9, idle_seconds=10)
    # A header of 8.6 MB: each round wants more, up to the last.
    key = b"tokenizer.ggml.tokens"
    size = 1 << 30
    start = b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + (1).to_bytes(8, "little") + len(key).to_bytes(8, "little")
    start += key + (9).to_bytes(4, "little") + (8).to_bytes(4, "little") + (80_000).to_bytes(8, "little")
    start += ((100).to_bytes(8, "little") + b"x" * 100) * 80_000
    most = rounds = 0
    wants = list(first_ranges(size))
    while wants:
        assert held.begin_round("me", ID, name="n", size=size) == sum(n for _, n in wants)
        body = b"".join(start[offset : offset + n].ljust(n, b"\0") for offset, n in wants)
        outcome = held.end_round("me", ID, body)
        most, rounds = max(most, held.held_nbytes), rounds + 1
        wants = list(getattr(outcome, "ranges", ()))
    assert rounds <= 6 and MOST_NBYTES // 2 <= most <= MOST_NBYTES
    assert held.held_nbytes == 0


def test_slices_that_stand_still_are_given_up(client: Visitor, held: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent_body(request: object) -> object:
        yield b"abc"
        await asyncio.sleep(30)

    monkeypatch.setattr(uploads, "own_limits", lambda: replace(limits_from({}), upload_idle_seconds=0.05))
    monkeypatch.setattr(uploads.Request, "stream", silent_body)
    assert client.slices(b"", len(NET)).status == 408
    assert len(held) == 0


def test_a_format_without_an_index_says_so_and_keeps_nothing(client: Visitor, held: Uploads) -> None:
    import pickle

    data = pickle.dumps({"a": bytes(400_000)})
    says = json.loads(client.slices(head_and_end(data), len(data)).body)["waits"]
    assert says.startswith("A Python pickle: it is shown when all of it is here")
    assert held.held_nbytes == 0 and held.find("me", ID) is None
