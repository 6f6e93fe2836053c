"""A card says what the file shows and nothing else; a signature's list is compared and never taken for a signature."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
import yaml
from safetensors.torch import save_file

from inspector.cards.make import make_card
from inspector.cards.report import CardReport, SignatureReport, SignedAs
from inspector.cli.main import run
from inspector.readers import open_checkpoint
from inspector.render.card import card_cyclonedx, card_markdown


def card_of(path: Path) -> CardReport:
    return make_card(open_checkpoint(path), str(path))


@pytest.fixture
def squeezenet(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    path = tmp_path / "net.pth"
    torch.save(torchvision.models.squeezenet1_1(num_classes=7).state_dict(), path)
    return path


def test_the_facts_of_a_known_model(squeezenet: Path) -> None:
    card = card_of(squeezenet)
    assert card.model is not None
    assert (card.model.label, card.model.classes) == ("torchvision/squeezenet1_1?num_classes=7", 7)
    assert card.model.task == "image-classification"
    assert card.parameters == sum(p.numel() for p in torchvision.models.squeezenet1_1(num_classes=7).parameters())
    assert card.files[0].sha256 == hashlib.sha256(squeezenet.read_bytes()).hexdigest()
    assert card.signature is None


def front_matter(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text.split("---")[1])
    return found


def test_a_hub_reads_the_metadata(squeezenet: Path) -> None:
    text = card_markdown(card_of(squeezenet))
    assert front_matter(text) == {"pipeline_tag": "image-classification", "tags": ["torchvision", "squeezenet1_1"]}
    assert "licence, training data" in text


def test_of_an_unknown_network_nothing_is_made_up(tmp_path: Path) -> None:
    torch.save({"a.weight": torch.ones(3, 4), "b.weight": torch.ones(5, 3)}, tmp_path / "own.pth")
    card = card_of(tmp_path / "own.pth")
    assert card.model is None
    text = card_markdown(card)
    assert not front_matter(text)
    assert "No known architecture was recognised" in text
    assert "modelCard" not in card_cyclonedx(card)["components"][0]


def test_a_name_from_the_file_is_text_in_the_table(tmp_path: Path) -> None:
    save_file(
        {"w": torch.ones(2)}, tmp_path / "x.safetensors", metadata={"a|b": "<script>[x](http://e)\n# y", "k": "v" * 900}
    )
    text = card_markdown(card_of(tmp_path / "x.safetensors"))
    row = next(line for line in text.splitlines() if line.startswith(r"| a\|b"))
    assert r"\<script\>\[x\]" in row
    assert not [line for line in text.splitlines() if line.startswith("# y")]
    assert max(map(len, text.splitlines())) < 400


def test_the_bill_of_materials_keeps_the_schema_s_rules(squeezenet: Path) -> None:
    made = card_cyclonedx(card_of(squeezenet))
    # https://cyclonedx.org/docs/1.6/json: required fields, patterns, enumerations.
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["serialNumber"])
    component = made["components"][0]
    assert component["type"] == "machine-learning-model"
    assert component["name"] == "net"
    assert all(h["alg"] == "SHA-256" and re.fullmatch(r"[0-9a-f]{64}", h["content"]) for h in component["hashes"])
    assert set(component["modelCard"]["modelParameters"]) <= {"task", "architectureFamily", "modelArchitecture"}
    assert all(set(p) == {"name", "value"} and isinstance(p["value"], str) for p in component["properties"])
    assert made == card_cyclonedx(card_of(squeezenet))


def sign(place: Path, resources: list[dict[str, str]], predicate: str = "https://model_signing/signature/v1.0") -> None:
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "predicateType": predicate,
        "predicate": {"resources": resources},
    }
    payload = base64.b64encode(json.dumps(statement).encode()).decode()
    place.write_text(json.dumps({"mediaType": "x", "dsseEnvelope": {"payload": payload, "signatures": []}}))


def listed(path: Path, name: str = "") -> dict[str, str]:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"name": name or path.name, "algorithm": "sha256", "digest": digest}


def signature_of(path: Path) -> SignatureReport:
    found = card_of(path).signature
    assert found is not None
    return found


def test_a_signature_that_lists_the_file(squeezenet: Path) -> None:
    sign(squeezenet.with_name("model.sig"), [listed(squeezenet)])
    found = signature_of(squeezenet)
    assert found.agrees
    assert "was not checked" in found.says
    assert run(["card", str(squeezenet)]) == 0


def test_a_signature_of_another_content_is_an_error(squeezenet: Path) -> None:
    sign(squeezenet.with_name("net.pth.sig"), [{**listed(squeezenet), "digest": "0" * 64}])
    assert signature_of(squeezenet).entries == (("net.pth", SignedAs.DIFFERS),)
    assert run(["card", str(squeezenet)]) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "no Sigstore bundle"),
        ("nonsense", ""),
        (json.dumps({"dsseEnvelope": {"payload": "!!!"}}), "no base64"),
        (json.dumps({"dsseEnvelope": {"payload": base64.b64encode(b"[]").decode()}}), "not one of model signing"),
    ],
)
def test_what_is_no_signature_is_said_and_agrees_with_nothing(squeezenet: Path, text: str, says: str) -> None:
    squeezenet.with_name("model.sig").write_text(text)
    found = signature_of(squeezenet)
    assert not found.agrees
    assert found.refusal
    assert says in found.refusal


def test_a_folder_with_a_file_that_is_not_listed(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    save_file({"a": torch.ones(2)}, folder / "model-00001-of-00002.safetensors")
    save_file({"b": torch.ones(3)}, folder / "model-00002-of-00002.safetensors")
    index = {
        "metadata": {},
        "weight_map": {f"{k}": f"model-0000{n}-of-00002.safetensors" for n, k in ((1, "a"), (2, "b"))},
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    sign(
        folder / "model.sig",
        [
            listed(folder / "model-00001-of-00002.safetensors"),
            {**listed(folder / "model.safetensors.index.json"), "name": "../../etc/passwd"},
        ],
    )
    entries = dict(signature_of(folder).entries)
    assert entries["model-00001-of-00002.safetensors"] is SignedAs.EQUAL
    assert entries["../../etc/passwd"] is SignedAs.ABSENT
    assert entries["model-00002-of-00002.safetensors"] is SignedAs.UNLISTED


def test_one_file_of_a_signed_folder(squeezenet: Path) -> None:
    other = squeezenet.with_name("config.json")
    other.write_text("{}")
    sign(squeezenet.with_name("model.sig"), [listed(squeezenet), {**listed(other), "digest": "1" * 64}])
    assert signature_of(squeezenet).entries == (("net.pth", SignedAs.EQUAL),)
