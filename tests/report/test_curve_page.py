"""Pages, drawings and comparisons of results about claimed curves."""

import re
from dataclasses import replace

import pytest

from lidp import CoinFlip, OneRun, Verdict
from lidp.report import curve_drawings, drawings
from lidp.report.comparison import Comparison
from lidp.report.curve_figure_data import ClaimedTradeOff, NoiseGauge
from lidp.report.figure_data import BoundPath
from lidp.report.page import render_report
from lidp.report.roc import RocCurve
from lidp.report.tables import numbers_behind, settings_of
from tests.report import curve_results
from tests.report.curve_results import CURVE_RESULTS
from tests.report.results import pair_result, result_like, scores_like
from tests.report.test_page import Page, check_numbers


@pytest.mark.parametrize("name", CURVE_RESULTS)
def test_page_agrees_with_the_json(name):
    result = CURVE_RESULTS[name]()
    page = check_numbers(result)
    needed = {"verdict", "verdicts.curve", "verdicts.point", "bound.hypothesis", "hypothesis", "bound.epsilon"}
    needed |= {"epsilon_point", "claim.epsilon", "claim.delta", "bound.guarantee", "bound.point.method"}
    assert needed <= set(page.values)
    family = result.bound.curve.has_family
    assert ("effective_noise" in page.values) == (family and result.bound.effective_noise is not None)
    assert ("bound.fell_at" in page.values) == (result.verdict is Verdict.REFUTED)
    assert page.values["verdicts.point"][0][0] == str(result.verdicts["point"])
    assert str(result.bound.curve) in page.text
    ids = [given["id"] for _, given in page.tags if "id" in given]
    assert len(ids) == len(set(ids))
    assert "trade-off-title" in ids
    assert ("point-gauge-title" in ids) == family
    for _, given in page.tags:
        assert not re.search("nan|inf", given.get("d", ""))
    assert not any(tag == "script" for tag, _ in page.tags)
    assert len(render_report(result)) < 120_000


def test_page_about_a_point_has_no_trade_off():
    page = check_numbers(result_like(scores_like(CoinFlip(6))))
    assert not any("trade-off" in given.get("id", "") for _, given in page.tags)
    assert "verdicts.curve" not in page.values
    assert "hypothesis" not in page.text.lower()


def test_page_shows_the_curve_beside_a_test_of_its_point():
    page = check_numbers(curve_results.gaussian(0.1, 100, point_only=True))
    assert "coin-wager tests one point of the claimed privacy curve of 1-GDP." in page.text
    assert page.values["hypothesis"] == [["point", "point"]]
    assert "claimed 4.37718" in page.text


def test_provisional_bound_on_a_curve_proves_nothing():
    result = replace(curve_results.refuted(), method=OneRun(), planned_trials=500, verdict=Verdict.INCONCLUSIVE)
    page = check_numbers(result)
    assert "provisional and proves nothing" in page.text
    assert "amounts of noise that the audit excludes, provisionally." in page.text
    assert "provisional, effective noise" in page.text
    assert "bound.fell_at" not in page.values
    for words in ("It is refuted.", "curve refuted after", "does not stay", "is wrong with probability"):
        assert words not in page.text


def test_settings_have_the_curve_and_the_method_for_the_point():
    rows = {row.name: row for row in settings_of(curve_results.dpsgd())}
    assert rows["claimed privacy curve"].words == "DP-SGD with noise multiplier 2, sampling rate 0.1 and 20 steps"
    assert rows["tested hypothesis"].words == "curve"
    assert rows["method for the point"].words == "coin-wager"
    assert float(rows["claimed ε"].words) >= rows["claimed ε"].value
    assert all(row.meaning for row in numbers_behind(curve_results.dpsgd()))


def test_bound_in_numbers_has_both_bounds():
    result = curve_results.refuted()
    rows = render_report(result).partition("The bound in numbers")[2].partition("</table>")[0]
    cells = re.findall(r'<td class="number">([^<]+)</td>', rows)
    assert cells[:3] == ["0", "0", "0"]
    assert cells[-3:] == ["60", "9.716", "3.45"]


def test_noise_gauge_draws_what_is_excluded():
    refuted = str(curve_drawings.noise_gauge("g", NoiseGauge.of(curve_results.refuted())))
    assert refuted.index('class="fill beyond"') < refuted.index('class="halo"') < refuted.index('class="mark"')
    x, width = map(float, re.search(r'"fill beyond" x="([\d.]+)" y="46" width="([\d.]+)"', refuted).groups())
    assert x == pytest.approx(14 + 412 * 0.5117 / 1.5, abs=0.2)
    assert x + width == pytest.approx(426, abs=0.2)  # to the end of the line
    assert "Excluded: 0.5118 times as much and more, which includes the claim." in refuted
    stands = str(curve_drawings.noise_gauge("g", NoiseGauge.of(curve_results.not_refuted())))
    assert 'class="fill bound"' in stands
    assert "which does not include the claim" in stands
    nothing = str(curve_drawings.noise_gauge("g", NoiseGauge.of(curve_results.nothing_excluded())))
    assert "fill beyond" not in nothing
    assert "fill bound" not in nothing
    assert "No amount of noise is excluded." in nothing


def test_trade_off_figure_has_claim_exceeded_curve_and_observed_errors():
    result = curve_results.refuted()
    figure = str(curve_drawings.trade_off_figure("t", ClaimedTradeOff.of(result), RocCurve.of(result)))
    for kind in ("claim", "fill excluded", "bound-line line-3", "inserted-line"):
        assert figure.count(f'class="{kind}"') == 2, kind  # the line, and its legend
    assert "curve of 0.5118 times the claimed noise, which the audit excludes" in figure
    nothing = curve_results.nothing_excluded()
    figure = str(curve_drawings.trade_off_figure("t", ClaimedTradeOff.of(nothing), RocCurve.of(nothing)))
    assert "line-3" not in figure
    assert "refuted" not in figure


def test_roc_corners_are_those_of_the_curve():
    result = curve_results.refuted()
    roc, trade_off = RocCurve.of(result), ClaimedTradeOff.of(result)
    by_curve = str(drawings.roc_figure("r", roc, result.claim, trade_off))
    assert by_curve.count('class="fill excluded"') == 3
    assert "excluded by the claimed privacy curve" in by_curve
    assert "excluded by a true claim of ε" in str(drawings.roc_figure("r", roc, result.claim))


def test_path_figure_has_a_second_line_and_marks_the_refutation():
    figure = str(drawings.path_figure("p", BoundPath.of(curve_results.refuted()), "trials"))
    assert "by the curve: ε = 9.716 after 60 trials; at this δ alone: ε = 3.45 after 60 trials." in figure
    assert "Claimed: 4.37718. The curve was refuted after 9 trials." in figure
    assert figure.count('class="bound-line line-1"') == 2
    assert "curve refuted after 9 trials" in figure
    stands = str(drawings.path_figure("p", BoundPath.of(curve_results.not_refuted()), "trials"))
    assert "at this δ alone" in stands
    assert "curve refuted" not in stands


@pytest.fixture(scope="module")
def comparison():
    audits = [(name, CURVE_RESULTS[name]()) for name in ("refuted", "nothing excluded", "without family")]
    return Comparison.of([*audits, ("point", pair_result())])


def test_comparison_has_a_table_of_curves(comparison):
    rows = {row[0]: row[1:] for row in comparison.curve_rows()}
    assert rows["refuted"] == ("1-GDP", "curve", "refuted", "not refuted", "3.45", "at most 0.5118")
    assert rows["nothing excluded"] == ("1-GDP", "curve", "not refuted", "not refuted", "0", "no amount excluded")
    assert rows["without family"][5] == "–"
    assert "point" not in rows
    page = Page(comparison.page())
    for words in (
        "Privacy curves",
        "ε ≥ at δ alone",
        "Refuting a curve does not refute its point.",
        "bound by the curve ε ≥",
    ):
        assert words in page.text


def test_terminal_shows_curves_beside_points(comparison):
    columns = [[str(cell) for cell in column.cells] for column in comparison.table().columns]
    assert columns[0][-6:] == ["claimed curve", "tested", "curve", "point", "ε ≥ at δ alone", "noise, claimed = 1"]
    assert columns[1][-6:] == ["1-GDP", "curve", "refuted", "not refuted", "3.45", "at most 0.5118"]
    assert columns[4][-6:] == ["–"] * 6


def test_comparison_of_points_has_no_table_of_curves():
    comparison = Comparison.of([("a", pair_result()), ("b", pair_result("laplace", runs=1500))])
    assert comparison.curve_rows() == []
    assert len(list(comparison.table().columns[0].cells)) == 10
    assert "curve" not in Page(comparison.page()).text.lower()


def test_both_bounds_of_an_audit_of_a_curve_count(comparison):
    assert comparison.failure_probability == 0.35  # three curves with two bounds, and one point
    assert "at least one of these 7 bounds is wrong is at most 0.35." in comparison.remarks[0]


def test_test_of_the_curve_and_of_its_point_are_two_tries():
    curve, point = curve_results.gaussian(0.1, 300, stop_when="never"), curve_results.gaussian(0.1, 300, point_only=True)
    text = " ".join(Comparison.of([("a", curve), ("b", point)]).remarks)
    assert "test the same target and claim but differ in method" in text
