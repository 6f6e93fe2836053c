"""What the Open page's box says of what is neither a web address nor an id of the hub, and of what was read so far."""

from __future__ import annotations

import pytest

from inspector.errors import AddressError, AddressRefused
from inspector.remote.refusals import advice
from inspector.web.addresses import _hub_named, refuse_other_schemes
from inspector.web.remote_files import read_so_far

REFUSED = {
    "file:///etc/passwd": ("a file of one machine", "Drop the file"),
    "FILE:/etc/passwd": ("a file of one machine", "Drop the file"),
    "ftp://127.0.0.1/x": ("ftp: is asked by no part", "http or https address"),
    "s3://bucket/key": ("s3: is asked by no part", "drop the file here"),
    "http:\\\\127.0.0.1\\x": ("lacks the two slashes behind http:", "Write http://127.0.0.1/x"),
    "http:/127.0.0.1/x": ("lacks the two slashes behind http:", "Write http://127.0.0.1/x"),
    "HTTPS:example.com/x": ("lacks the two slashes behind https:", "Write https://example.com/x"),
    "http:127.0.0.1/x": ("lacks the two slashes behind http:", "Write http://127.0.0.1/x"),
    "//127.0.0.1/x": ("lacks its scheme", "Write https://127.0.0.1/x"),
    "127.0.0.1:9713/x": ("lacks its scheme", "Write http://127.0.0.1:9713/x"),
    "example.com:80": ("lacks its scheme", "https://example.com:80"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_each_other_way_has_its_own_sentence(text: str) -> None:
    with pytest.raises(AddressRefused) as error:
        refuse_other_schemes(text)
    says, hint = REFUSED[text]
    assert says in error.value.says and hint in error.value.hint


@pytest.mark.parametrize("text", ["hf://org/name", "HF://org/name@v1/a.bin", "org/name", "gpt2"])
def test_ids_of_the_hub_pass(text: str) -> None:
    refuse_other_schemes(text)


@pytest.mark.parametrize(("passwords", "says"), [(True, "a name and password may open it"), (False, "a signature")])
def test_who_may_give_no_password_is_not_advised_to(passwords: bool, says: str) -> None:
    assert says in advice(401, passwords=passwords)
    assert ("password" in advice(401, passwords=passwords)) is passwords


def test_a_header_that_took_most_of_the_file_is_not_called_only_a_header() -> None:
    assert "13.2 MB of 13.2 MB were read" in read_so_far(13_193_000, 13_216_000)
    assert "Only its header was read" in read_so_far(262_000, 44_800_000)
    assert "Only its header was read" in read_so_far(1_640, 1_640)


def test_an_id_that_no_network_leads_to_is_named_and_a_refusal_stays_itself() -> None:
    with pytest.raises(AddressError, match="this server, so lab/net was not looked up") as error, _hub_named("lab/net"):
        raise AddressError("The name hub.example stands for no address here.") from OSError("no name")
    assert "The name hub.example stands for no address here." in error.value.says
    with pytest.raises(AddressError, match=r"^It asks for a login"), _hub_named("lab/net"):
        raise AddressError("It asks for a login.")
