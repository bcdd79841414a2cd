"""Figures are short, and drawn for every experiment."""

import re
from pathlib import Path
from xml.dom import minidom

import pytest

from lidp.reproduce import EXPERIMENTS
from lidp.reproduce.figures import FIGURES, write_figure
from lidp.reproduce.svg import shorten_svg
from lidp.reproduce.tables import read_table

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"


def test_shorten_svg_rounds_coordinates_and_leaves_text_alone():
    lines = [
        '<svg version="1.1" width="10.123456pt">',
        ' <g id="axes_1">',
        '  <path id="m12ab" d="M 123.456789 -0.001 ',
        "L 1.23456 2 ",
        "z",
        '" style="stroke-width: 0.8"/>',
        '  <text style="font-size: 9px; font-family: \'Arial\'; x: 1" x="1.234" transform="rotate(-0 1 2)">slope -1.0123</text>',
        " </g>",
        "</svg>",
    ]
    assert shorten_svg("\n".join(lines)).splitlines() == [
        '<svg version="1.1" width="10.1pt">',
        "<g>",
        '<path id="m12ab" d="M123.5 0L1.23 2z" style="stroke-width: 0.8"/>',
        '<text style="font-size: 9px; x: 1" x="1.23">slope -1.0123</text>',
        "</g>",
        "</svg>",
    ]


def test_every_experiment_has_a_figure():
    assert set(FIGURES) == set(EXPERIMENTS)


@pytest.mark.parametrize("path", sorted(KEPT.glob("**/*.csv")), ids=lambda path: str(path.parent.relative_to(KEPT)))
def test_write_figure_draws_the_kept_tables(path, tmp_path):
    write_figure(tmp_path / "a.svg", path.stem, read_table(path))
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert minidom.parseString(text).documentElement.tagName == "svg"  # noqa: S318  # our own file
    assert not re.search(r'="[^"]*\d\.\d{3}', text)  # rounded
    assert len(text) < 150_000
    write_figure(tmp_path / "b.svg", path.stem, read_table(path))
    assert (tmp_path / "b.svg").read_bytes() == (tmp_path / "a.svg").read_bytes()


def test_figures_are_kept_as_svg_only():
    assert not list(KEPT.glob("**/*.png"))
    assert {path.with_suffix(".csv") for path in KEPT.glob("**/*.svg")} <= set(KEPT.glob("**/*.csv"))
