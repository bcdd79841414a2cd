"""Audits side by side."""

import io
from dataclasses import replace

import pytest

from lidp import CoinFlip, LeaveOneOut, Neighbours, Wilson
from lidp.errors import InvalidArgument
from lidp.report.comparison import Comparison
from tests.report.results import as_guarantee, pair_result, result_like, scores_like
from tests.report.test_page import EVIL, Page


@pytest.fixture(scope="module")
def audits():
    first = result_like(scores_like(CoinFlip(6)), target="one")
    return [("a", first), ("b", result_like(scores_like(LeaveOneOut(4, 3)), Wilson(), target="two"))]


def test_rows_are_the_results(audits):
    rows = Comparison.of(audits).rows()
    for row, (name, result) in zip(rows, audits, strict=True):
        assert row[:3] == (name, result.target, str(result.verdict))
        assert row[4] == f"{result.bound.epsilon:.4g}"


def test_two_at_least(audits):
    with pytest.raises(InvalidArgument, match="at least two"):
        Comparison.of(audits[:1])


def test_failure_probabilities_add_up(audits):
    assert Comparison.of(audits).failure_probability == pytest.approx(0.1)
    assert "at most 0.1" in Comparison.of(audits).remarks[0]
    assert Comparison.of(audits * 30).failure_probability == 1.0


def test_remarks(audits):
    assert any("guarantees" in remark for remark in Comparison.of(audits).remarks)
    other = result_like(scores_like(CoinFlip(6, Neighbours.REPLACE_ONE)), delta=1e-3)
    told = " ".join(Comparison.of([audits[0], ("c", other)]).remarks)
    assert "differ in neighbours" in told
    assert "differ in δ" in told
    assert "seed" not in told
    again = replace(audits[0][1], seed=99)
    assert any("running again until" in remark for remark in Comparison.of([audits[0], ("again", again)]).remarks)


def test_bounds_without_a_failure_probability(audits):
    found = Comparison.of([audits[0], ("c", as_guarantee(audits[1][1], "credible"))])
    assert found.failure_probability == pytest.approx(0.05)
    assert any("Credible bounds" in remark for remark in found.remarks)
    early = replace(audits[1][1], planned_trials=900)
    assert any("provisional" in remark for remark in Comparison.of([audits[0], ("d", early)]).remarks)


def test_one_name_twice(audits):
    names = [name for name, _ in Comparison.of([audits[0], audits[0], audits[1]]).audits]
    assert names == ["a (1)", "a (2)", "b"]


def test_the_page(audits, tmp_path):
    found = Comparison.of([*audits, ("pair", pair_result()), (EVIL, replace(audits[0][1], target=EVIL))])
    path = found.write(tmp_path / "compare.html")
    page = Page(path.read_text(encoding="utf-8"))
    values = {float(given["value"]) for tag, given in page.tags if tag == "data"}
    assert {result.bound.epsilon for _, result in audits} <= values
    assert "<script>alert(1)</script>" in page.text
    assert not any(tag in ("script", "img") for tag, _ in page.tags)
    ids = [given["id"] for _, given in page.tags if "id" in given]
    assert len(ids) == len(set(ids))


def test_many_audits_do_not_crowd_the_legend(audits):
    page = Comparison.of(audits * 10).page()
    Page(page)
    assert len(page) < 300_000


def test_markup_of_the_terminal_stays_text(audits):
    from rich.console import Console

    console = Console(width=200, record=True, file=io.StringIO())
    console.print(Comparison.of([audits[0], ("[red]x[/red]", replace(audits[0][1], target="[bold]"))]).table())
    told = console.export_text()
    assert "[red]x[/red]" in told
    assert "[bold]" in told
