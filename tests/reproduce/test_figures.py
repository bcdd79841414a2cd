"""Figures are short, and drawn for every experiment."""

import re
from pathlib import Path
from xml.dom import minidom

import pytest

from lidp.reproduce import EXPERIMENTS
from lidp.reproduce.figures import FIGURES, write_figure
from tests.reproduce.outputs import read_table

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"


def test_every_experiment_has_a_figure():
    assert set(FIGURES) == set(EXPERIMENTS)


@pytest.mark.slow_after_first
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
