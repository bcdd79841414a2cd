"""The badge: what it says, and that everybody can read it."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from lidp import Verdict
from lidp.report.badge import badge_message, render_badge
from tests.report import curve_results
from tests.report.results import case
from tests.report.test_formats import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"


def parsed(result):
    return ET.fromstring(render_badge(result))  # noqa: S314  # our own


def luminance(colour):
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_badge_states_verdict_bound_and_claim():
    result = case("coins", "coin-wager")
    assert badge_message(result) == f"refuted: ε ≥ {result.bound.epsilon:g} of 0.2"
    stands = case("coins", "coin-wager", claim=9.0)
    assert badge_message(stands) == f"not refuted: ε ≥ {stands.bound.epsilon:g} of 9"
    assert badge_message(replace(stands, planned_trials=10**6)).startswith("not refuted so far: ε ≥ ")
    assert badge_message(replace(stands, verdict=Verdict.INCONCLUSIVE)) == "inconclusive"
    assert badge_message(curve_results.refuted()).startswith("refuted: ε ≥ ")


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_badge_has_a_title_and_readable_text(verdict):
    result = replace(case("coins", "coin-wager"), verdict=verdict)
    root = parsed(result)
    title = root.find(f"{SVG}title")
    assert root.attrib["aria-labelledby"] == title.attrib["id"]
    assert title.text == f"DP audit of leaky: {badge_message(result)}"
    assert [text.text for text in root.iter(f"{SVG}text")] == ["DP audit", badge_message(result)]
    for box in root.iter(f"{SVG}rect"):
        assert 1.05 / (luminance(box.attrib["fill"]) + 0.05) > 4.5


def test_the_verdicts_have_different_colours():
    result = case("coins", "coin-wager")
    badges = [parsed(replace(result, verdict=verdict)) for verdict in Verdict]
    assert len({list(badge.iter(f"{SVG}rect"))[1].attrib["fill"] for badge in badges}) == len(Verdict)


def test_the_text_of_a_badge_fits_into_it():
    root = parsed(case("coins", "coin-wager"))
    first, second = root.iter(f"{SVG}text")
    boxes = [float(box.attrib["width"]) for box in root.iter(f"{SVG}rect")]
    assert float(first.attrib["x"]) + float(first.attrib["textLength"]) < boxes[0]
    assert float(second.attrib["x"]) + float(second.attrib["textLength"]) < sum(boxes) == float(root.attrib["width"])


def test_a_badge_loads_nothing_and_hostile_names_stay_text():
    text = render_badge(case("coins", "coin-wager", target=HOSTILE))
    assert "<script" not in text
    assert not re.search(r"href|url\(|<image|<style", text)
    assert HOSTILE[:26] in parsed(case("coins", "coin-wager", target=HOSTILE)).find(f"{SVG}title").text
