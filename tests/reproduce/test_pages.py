"""The reproduction pages state the numbers and verdicts of the kept summaries."""

import json
import re
from pathlib import Path

import pytest

from lidp.reproduce import EXPERIMENTS
from tests.reproduce.section_6_tables import ACCURACY, BUDGET, FACTOR, RANKING, SHARE, TABLES, WAGER

DOCS = Path(__file__).parents[2] / "docs"
KEPT = DOCS / "reproduction"
SUMMARIES = {str(path.parent.relative_to(KEPT)): path for path in sorted(KEPT.glob("**/summary.json"))}
SECTION_4 = [name for name in SUMMARIES if name.startswith(("gaussian-", "models-", "binomial-"))]


def read(name):
    return (DOCS / name).read_text(encoding="utf-8")


def test_every_experiment_was_run_at_more_than_smoke_scale():
    assert {path.parent.name for path in SUMMARIES.values()} == set(EXPERIMENTS)
    assert "smoke" not in {json.loads(path.read_text(encoding="utf-8"))["scale"] for path in SUMMARIES.values()}


@pytest.mark.parametrize("name", SECTION_4)
def test_section_4_page_states_every_finding(name):
    page = read("reproduction.md")
    for finding in json.loads(SUMMARIES[name].read_text(encoding="utf-8"))["findings"]:
        ours = finding["ours"]
        number = "not found" if ours is None else f"{ours:,.0f}" if abs(ours) >= 100 else f"{ours:.3g}"
        paper = "" if finding["paper"] is None else f"{finding['paper']:g}"
        verdict = {True: "holds", False: "**differs**", None: ""}[finding["holds"]]
        statement = finding["statement"].replace("|", "∣")
        assert f"| {statement} | {paper} | {number} | {verdict}" in page, finding


@pytest.mark.parametrize("name", TABLES)
def test_section_6_page_has_the_table_of_the_summaries(name):
    assert "\n\n" + "\n".join(TABLES[name]) + "\n\n" in read("reproduction-training.md")


@pytest.mark.parametrize("name", sorted(set(SUMMARIES) - set(SECTION_4)))
def test_section_6_tables_leave_out_no_finding_that_differs(name):
    """The other findings, and those about the 4th order, are in the files that the page links."""
    shown = (RANKING, WAGER, FACTOR, SHARE, ACCURACY, BUDGET)
    for finding in json.loads(SUMMARIES[name].read_text(encoding="utf-8"))["findings"]:
        if finding["holds"] is False:
            assert any(re.fullmatch(pattern, finding["statement"]) for pattern in shown), finding
    page = read("reproduction-training.md")
    assert f"(reproduction/{name}/{name.rpartition('/')[2]}.csv)" in page
    assert f"(reproduction/{name}/summary.json)" in page


@pytest.mark.parametrize("page", ["reproduction.md", "reproduction-training.md"])
def test_pages_show_figures_as_svg(page):
    figures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", read(page))
    assert figures
    assert all(figure.endswith(".svg") and (DOCS / figure).exists() for figure in figures)


def test_every_kept_figure_is_shown_on_a_page():
    pages = "".join(read(path.name) for path in DOCS.glob("*.md"))
    for figure in DOCS.glob("reproduction/**/*.svg"):
        assert f"({figure.relative_to(DOCS)})" in pages, figure
