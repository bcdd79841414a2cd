"""Pieces of HTML: text stays text, and nothing is active or tied to one theme."""

import re
from html.parser import HTMLParser

import pytest

from lidp._runtime.html_text import card, escaped, gauge, paragraph, progress_bar, table

HOSTILE = '<script>alert(1)</script><img src=x onerror="a()">&\x1b[2J\u202e'


class Tags(HTMLParser):
    """The tags, attributes and text of a piece of HTML; open and closing tags must match."""

    def __init__(self, html):
        super().__init__()
        self.names, self.attributes, self.text, self.open = [], [], "", []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        self.attributes += attributes
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


PIECES = {
    "card": card(HOSTILE, paragraph(HOSTILE), alarming=True),
    "table": table([(HOSTILE, HOSTILE)], header=[HOSTILE, HOSTILE]),
    "gauge": gauge(1.0, 2.0, HOSTILE),
    "progress": progress_bar(1, 2, HOSTILE),
}


@pytest.mark.parametrize("name", PIECES)
def test_hostile_text_stays_text(name):
    tags = Tags(PIECES[name])
    assert not {"script", "img"} & set(tags.names)
    assert not [key for key, _ in tags.attributes if key.startswith("on") or key in ("src", "href")]
    assert "\x1b" not in PIECES[name]
    assert "\u202e" not in PIECES[name]
    assert "<script>alert(1)</script>" in tags.text + "".join(str(value) for _, value in tags.attributes)


@pytest.mark.parametrize("name", PIECES)
def test_text_has_the_colour_of_the_theme(name):
    styles = ";".join(value for key, value in Tags(PIECES[name]).attributes if key == "style")
    assert not re.search(r"(?:^|;)color:", styles)
    assert not re.search(r"background:(?:white|#fff)", styles)


def test_long_text_is_cut_off():
    assert len(escaped("a" * 10_000)) < 2_100


@pytest.mark.parametrize(("value", "mark"), [(2.0, 1.0), (1.0, 1.0), (0.0, 0.0)])
def test_a_gauge_is_red_only_if_alarming(value, mark):
    assert "#d1453b" not in gauge(value, mark, "x")
    assert "#d1453b" in gauge(value, mark, "x", alarming=True)
    widths = [float(width) for width in re.findall(r"(?:width|left):([\d.]+)%", gauge(value, mark, "x"))]
    assert all(0 <= width <= 100 for width in widths)
