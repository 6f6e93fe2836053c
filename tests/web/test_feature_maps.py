"""The page's feature maps: of the chosen module and side, the scale said, dead channels marked."""

from __future__ import annotations

import io

import torch
from streamlit.testing.v1 import AppTest
from torchvision import models

from inspector.doctor.maps_asked import Order, Scale, Side, proposed_call
from inspector.doctor.report import CallRecord, Output, Trace
from inspector.web import uploads
from inspector.web.session import Hand
from tests.web.recents import opened_before

PAGE = """
from inspector.web import run_it, session
run_it.show_of_file(session.in_hand(), (3, 64, 64), 1)
"""


def page(app: AppTest) -> tuple[AppTest, str]:
    """The tab alone, the maps opened, of a network one of whose channels is dead. Also the key of its boxes."""
    torch.manual_seed(0)
    model = models.squeezenet1_1(weights=None, num_classes=3)
    with torch.no_grad():
        model.features[0].weight[5] = 0
        model.features[0].bias[5] = -1  # type: ignore[index]
    raw = io.BytesIO()
    torch.save(model.state_dict(), raw)
    stored = uploads.the_store().put_bytes(raw.getvalue(), name="net.pth", owner="me")
    hand = Hand(sha256=stored.sha256, name="net.pth")
    found, key = AppTest.from_string(PAGE, default_timeout=60), f"maps-{stored.sha256[:12]}"
    opened_before(found, [hand])
    found.session_state[f"{key}-open"] = True
    found.run()
    assert not found.exception and not found.error
    return found, key


def html(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def choose(app: AppTest, label: str, start: str) -> None:
    box = next(one for one in app.selectbox if one.label == label)
    box.select(next(option for option in box.options if option.startswith(start))).run()
    assert not app.exception


def test_a_module_is_chosen_and_what_is_dead_is_marked(app: AppTest) -> None:
    tab, _ = page(app)
    assert html(tab).count('class="mi-map') - html(tab).count('class="mi-maps') == 3
    assert "Output of classifier.2" in html(tab) and "own scale" in html(tab)
    choose(tab, "Module", "features.1 ")
    shown = html(tab)
    assert "Output of features.1 (ReLU), 1x64x31x31" in shown
    assert "1 channel of 64 (1.6 %) zero everywhere on this input" in shown
    assert '<figure class="mi-map mi-marked" title="Channel 5: zero everywhere">' in shown
    assert shown.count("data:image/png;base64,") == 64
    choose(tab, "Of", "Its input")
    # What the ReLU was given, before it changed it in place.
    assert "Input of features.1 (ReLU)" in html(tab) and "-1 everywhere" in html(tab)
    choose(tab, "Scale", "Shared")
    assert "One scale for all channels: -" in html(tab)
    choose(tab, "At most", "32")
    assert html(tab).count("data:image/png;base64,") == 32


def test_what_cannot_be_pictured_is_a_sentence(app: AppTest) -> None:
    tab, _ = page(app)
    choose(tab, "Module", "classifier.3 ")
    assert "one value for each channel, no picture" in tab.error[0].value.replace("\\", "")


def test_the_last_map_is_proposed() -> None:
    def call(number: int, *shape: int, ended: bool = True) -> CallRecord:
        outputs = (Output(shape=shape, dtype="float32", statistics=None),) if ended else ()
        return CallRecord(
            number=number, path=str(number), kind="X", time=1, depth=1, inside=None, settings="", inputs=(),
            outputs=outputs, ended=ended,
        )  # fmt: skip

    calls = (call(0, 1, 8, 9, 9), call(1, 1, 8, 4, 4), call(2, 1, 8, 1, 1), call(3, 1, 8), call(4, ended=False))
    trace = Trace(target="t", inputs=(), input_from="", training=False, calls=calls)
    assert proposed_call(trace) is calls[1]
    assert proposed_call(Trace(target="t", inputs=(), input_from="", training=False, calls=calls[2:])) is None
    assert (Side.OUTPUT, Order.VARIANCE, Scale.CHANNEL) == ("output", "variance", "channel")
