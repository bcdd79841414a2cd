"""Audits side by side."""

import io
from dataclasses import replace

import pytest

from lidp import CoinFlip, LeaveOneOut, Neighbours, OneRun, Verdict, Wilson
from lidp.errors import InvalidArgument
from lidp.report.comparison import Comparison
from tests.report.results import as_guarantee, pair_result, result_like, scores_like
from tests.report.test_page import EVIL, Page


@pytest.fixture(scope="module")
def audits():
    first = result_like(scores_like(CoinFlip(6)), target="one")
    return [("a", first), ("b", result_like(scores_like(LeaveOneOut(4, 3)), Wilson(), target="two"))]


def test_rows_hold_verdict_and_bound_of_each_audit(audits):
    rows = Comparison.of(audits).rows()
    for row, (name, result) in zip(rows, audits, strict=True):
        assert row[:3] == (name, result.target, str(result.verdict))
        assert result.bound.epsilon * (1 - 1e-3) < float(row[4]) <= result.bound.epsilon


def test_rows_mark_unfinished_audits(audits):
    going = replace(audits[0][1], planned_trials=900, verdict=Verdict.NOT_REFUTED)
    early = replace(audits[1][1], planned_trials=900, verdict=Verdict.INCONCLUSIVE)
    assert [row[2] for row in Comparison.of([("a", going), ("b", early)]).rows()] == [
        "not refuted so far",
        "no verdict yet",
    ]


def test_comparison_of_one_audit_is_refused(audits):
    with pytest.raises(InvalidArgument, match="at least two"):
        Comparison.of(audits[:1])


def test_failure_probabilities_add_up(audits):
    assert Comparison.of(audits).failure_probability == pytest.approx(0.1)
    assert "at most 0.1" in Comparison.of(audits).remarks[0]
    assert Comparison.of(audits * 30).failure_probability == 1.0
    three = Comparison.of([*audits, audits[0]])
    assert three.failure_probability == 0.15  # and not 0.15000000000000002
    assert "at least one of these 3 bounds is wrong is at most 0.15." in three.remarks[0]


def test_remarks_name_differences_between_audits(audits):
    assert any("guarantees" in remark for remark in Comparison.of(audits).remarks)
    other = result_like(scores_like(CoinFlip(6, Neighbours.REPLACE_ONE)), delta=1e-3)
    text = " ".join(Comparison.of([audits[0], ("c", other)]).remarks)
    assert "differ in neighbours" in text
    assert "differ in δ: a bound at one δ says nothing about a claim at a larger δ." in text
    assert "seed" not in text


AGAIN = "differ only in their seed: repeating an audit until its claim is refuted is not valid."
BEST = "choosing the best of them afterwards is not valid."


def remarks_on(*results):
    return " ".join(Comparison.of([(str(order), result) for order, result in enumerate(results)]).remarks)


def test_remark_on_audits_that_differ_only_in_seed(audits):
    first = audits[0][1]
    assert AGAIN in remarks_on(first, replace(first, seed=99))
    assert BEST not in remarks_on(first, replace(first, seed=99))
    assert AGAIN not in remarks_on(first, first)
    assert AGAIN not in remarks_on(first, replace(first, seed=99, target="another"))
    assert AGAIN not in remarks_on(first, replace(first, seed=99, claim=replace(first.claim, epsilon=7.0)))


def test_remark_on_audits_that_differ_in_settings(audits):
    first = audits[0][1]
    for way, other in {
        "design": replace(first, design=CoinFlip(12)),
        "method": replace(first, method=OneRun()),
        "planned trials": replace(first, planned_trials=900),
        "failure probability": replace(first, bound=replace(first.bound, failure_probability=0.01)),
        "stopping rule": replace(first, configuration={"stop_when": "never"}),
    }.items():
        for seed in (first.seed, 99):
            remarks = remarks_on(first, replace(other, seed=seed))
            assert f"test the same target and claim but differ in {way}: {BEST}" in remarks
            assert AGAIN not in remarks


def test_no_remark_on_audits_of_changed_targets(audits):
    before = replace(audits[0][1], configuration={"fingerprint": "a"})
    after = replace(before, configuration={"fingerprint": "b"}, seed=99)
    assert AGAIN not in remarks_on(before, after)
    assert BEST not in remarks_on(before, after)


def test_credible_and_provisional_bounds_have_no_failure_probability(audits):
    comparison = Comparison.of([audits[0], ("c", as_guarantee(audits[1][1], "credible"))])
    assert comparison.failure_probability == pytest.approx(0.05)
    assert any("Credible bounds" in remark for remark in comparison.remarks)
    assert (
        "One bound has a failure probability: as far as its guarantee holds, it is wrong with probability at most 0.05."
        in comparison.remarks[0]
    )
    more = Comparison.of([*comparison.audits, ("d", audits[0][1])])
    assert "2 of the audits have a failure probability." in more.remarks[0]
    assert "at least one of these 2 bounds is wrong is at most 0.1." in more.remarks[0]
    none = Comparison.of([("c", as_guarantee(result, "credible")) for _, result in audits])
    assert none.remarks[0].startswith("None of the bounds has a failure probability.")
    assert "credibility 0.95." in Page(comparison.page()).text
    assert Page(comparison.page()).text.count("failure probability 0.05.") == 1
    early = replace(audits[1][1], planned_trials=900)
    comparison = Comparison.of([audits[0], ("d", early)])
    assert any("provisional" in remark for remark in comparison.remarks)
    assert comparison.failure_probability == 0.05


def test_audits_of_equal_names_get_numbers(audits):
    names = [name for name, _ in Comparison.of([audits[0], audits[0], audits[1]]).audits]
    assert names == ["a (1)", "a (2)", "b"]


def test_page_is_escaped_and_holds_all_bounds(audits, tmp_path):
    comparison = Comparison.of([*audits, ("pair", pair_result()), (EVIL, replace(audits[0][1], target=EVIL))])
    path = comparison.write(tmp_path / "compare.html")
    page = Page(path.read_text(encoding="utf-8"))
    values = {float(given["value"]) for tag, given in page.tags if tag == "data"}
    assert {result.bound.epsilon for _, result in audits} <= values
    assert "<script>alert(1)</script>" in page.text
    assert not any(tag in ("script", "img") for tag, _ in page.tags)
    ids = [given["id"] for _, given in page.tags if "id" in given]
    assert len(ids) == len(set(ids))


def test_legend_has_the_claim_only_if_all_audits_share_it(audits):
    page = Page(Comparison.of([*audits, ("pair", pair_result())]).page())
    assert sum(tag == "ul" and given.get("class") == "keys" for tag, given in page.tags) == 1
    assert "the claims differ and are not drawn" in page.text
    assert not any(given.get("class") == "claim" for _, given in page.tags)
    same = Page(Comparison.of(audits).page())
    assert "Lower bound on ε of each audit, and the claim." in same.text
    # Once in the figure, once in its legend.
    assert sum(given.get("class") == "claim" for _, given in same.tags) == 2


def test_page_of_many_audits_stays_small(audits):
    page = Comparison.of(audits * 10).page()
    Page(page)
    assert len(page) < 300_000


def test_table_shows_console_markup_as_text(audits):
    from rich.console import Console

    console = Console(width=200, record=True, file=io.StringIO())
    console.print(Comparison.of([audits[0], ("[red]x[/red]", replace(audits[0][1], target="[bold]"))]).table())
    text = console.export_text()
    assert "[red]x[/red]" in text
    assert "[bold]" in text
