"""How values show themselves in notebooks."""

import pytest

import lidp
from lidp.report.comparison import Comparison
from tests._runtime.test_html_text import HOSTILE, Tags
from tests.report import curve_results
from tests.report.results import case, pair_result


def test_a_refuted_result_says_what_its_text_says_in_red():
    result = case("coins", "coin-wager", target=HOSTILE)
    tags, html = Tags(result._repr_html_()), result._repr_html_()
    assert "script" not in tags.names
    assert "#d1453b" in html
    assert "refuted: <script>alert(1)</script>" in tags.text
    for words in ("more than the 0.2 claimed", "coin-wager", "finite-sample", "48 of 48 trials x 6 canaries"):
        assert words in tags.text


def test_a_result_that_is_not_refuted_is_not_red():
    html = case("coins", "coin-wager", claim=9.0)._repr_html_()
    assert "#d1453b" not in html
    assert "not refuted" in html


def test_a_provisional_bound_above_the_claim_is_not_red():
    result = case("coins", "one-run", planned=100, verdict=lidp.Verdict.INCONCLUSIVE)
    assert result.bound.epsilon > result.claim.epsilon
    assert "#d1453b" not in result._repr_html_()


@pytest.mark.parametrize("make", [pair_result, curve_results.refuted, curve_results.refuted_by_canary])
def test_labels_of_ten_characters_are_kept_apart_from_their_text(make):
    result = make()
    html, table = result._repr_html_(), result.table()
    for label in ("leak", "hypothesis", "curve"):
        if f"\n  {label}" in str(result):
            assert f">{label}</th>" in html
            assert label in list(table.columns[0].cells)


def test_a_result_without_scores_can_be_shown():
    result = case("coins", "coin-wager")
    assert lidp.AuditResult.from_json(result.to_json())._repr_html_() == result._repr_html_()


def test_a_bound_shows_its_guarantee_and_evidence():
    text = Tags(case("coins", "coin-wager").bound._repr_html_()).text
    assert text.startswith("ε ≥ ")
    assert "holds for any number of trials" in text


def test_a_plan_shows_its_rows_and_its_recommendation():
    planned = lidp.plan(lidp.Claim(0.5, 1e-5), suspect=4.0, canaries=16, repeats=3)
    tags = Tags(planned._repr_html_())
    assert tags.names.count("tr") == 1 + len(planned.rows)
    assert planned.sentence() in tags.text


def test_a_comparison_shows_its_audits_and_remarks():
    comparison = Comparison.of([(HOSTILE, case("coins", "coin-wager")), ("curve", curve_results.refuted())])
    tags = Tags(comparison._repr_html_())
    assert "script" not in tags.names
    assert tags.names.count("table") == 2
    for remark in comparison.remarks:
        assert remark in tags.text


def test_progress_is_a_bar_with_its_text():
    progress = lidp.Progress(done=3, planned=12, epsilon=0.5, claim=1.0, seconds=1.5, failed=0)
    tags = Tags(progress._repr_html_())
    assert ("value", "3") in tags.attributes
    assert ("max", "12") in tags.attributes
    assert str(progress) in tags.text
