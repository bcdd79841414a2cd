"""The figures of the page: axes that make sense, and what must be seen."""

import re
from dataclasses import replace

import numpy as np
import pytest

from lidp import Claim, CoinFlip, LeaveOneOut
from lidp.report import drawings
from lidp.report.figure_data import CanaryCorrelation, Gauge
from lidp.report.roc import RocCurve
from lidp.report.svg import ticks
from lidp.report.trial_facts import Series
from tests.report.results import result_like, scores_like


def numbers(markup):
    """The ticks of both axes, as numbers: y first."""
    labels = re.findall(
        r'<text class="tick" x="[-\d.]+" y="[-\d.]+" text-anchor="(end|middle)">([^<]+)</text>', str(markup)
    )
    return [[float(text.replace(",", "")) for anchor, text in labels if anchor == side] for side in ("end", "middle")]


@pytest.mark.parametrize("values", [[0.01], [0.02] * 30, [1e-4, 2e-4], [0.001, 5.0, 0.3]])
def test_axis_of_positive_values_is_not_negative(values):
    up, across = numbers(drawings.series_figure("s", Series.of("seconds", range(len(values)), values)))
    assert min(up) >= 0
    assert max(up) >= 0.8 * max(values)
    assert across == [float(int(tick)) for tick in across]


@pytest.mark.parametrize("value", [1.0, 1.0 - 1e-13])
def test_axis_of_equal_values_starts_at_0(value):
    up, _ = numbers(drawings.series_figure("s", Series.of("scores_accuracy", range(3), [1.0, value, 1.0])))
    assert (min(up), max(up)) == (0, 1)


@pytest.mark.parametrize("values", [[0.0], [-2.0], [-3.0, -1.0], [-1.0, 4.0], [5.0, 5.5]])
def test_every_series_lies_within_its_axis(values):
    low, high = drawings._axis(min(values), max(values))
    assert low <= min(values) <= max(values) <= high
    assert low < high
    assert min(values) < 0 or low >= 0
    assert max(values) > 0 or min(values) == 0 or high <= 0


def test_ticks_of_counts_are_whole_numbers():
    assert ticks(0, 1, least=1.0) == [0, 1]
    assert ticks(0, 3, least=1.0) == [0, 1, 2, 3]
    assert ticks(0, 1) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]


def test_gauge_draws_the_claim_over_the_bar():
    figure = str(drawings.gauge("g", Gauge.of(result_like(scores_like(CoinFlip(6), 120), claim=1.0))))
    assert figure.index('class="fill beyond"') < figure.index('class="halo"') < figure.index('class="mark"')


def test_roc_band_is_drawn_as_edges():
    result = result_like(scores_like(CoinFlip(6), 300))
    figure = str(drawings.roc_figure("r", RocCurve.of(result), result.claim))
    assert figure.count('class="band-line"') == 3  # two edges, and the legend
    assert "fill band" not in figure


def test_a_band_that_would_cover_the_whole_figure_is_not_drawn():
    result = result_like(scores_like(CoinFlip(6), 5))
    roc = RocCurve.of(result)
    assert roc.reach_inserted is not None
    assert not roc.has_band
    figure = str(drawings.roc_figure("r", roc, result.claim))
    assert "band-line" not in figure
    assert "the figure has no band" in figure


@pytest.mark.parametrize(("epsilon", "shaded"), [(0.5, True), (4.0, True), (6.0, False), (30.0, False)])
def test_corners_that_are_too_small_to_be_seen_are_not_shaded(epsilon, shaded):
    result = result_like(scores_like(CoinFlip(6), 50))
    figure = str(drawings.roc_figure("r", RocCurve.of(result), Claim(epsilon, 1e-5)))
    assert figure.count('<path class="fill excluded"') == (2 if shaded else 0)
    assert figure.count('<rect class="fill excluded"') == (1 if shaded else 0)  # the legend
    assert ("too small to be seen" in figure) is not shaded


@pytest.mark.parametrize(("spread", "drawn"), [(0.5, True), (1e-4, False)])
def test_the_range_of_a_series_is_drawn_if_it_can_be_seen(spread, drawn):
    steps = np.repeat(np.arange(120.0), 5) / 120 + spread * np.tile([0, 1, 0, 1, 0], 120)  # five trials per bin
    series = Series.of("scores_accuracy", range(600), steps)
    assert series.has_range is drawn
    assert ("fill band" in str(drawings.series_figure("s", series))) is drawn


def test_one_trial_per_bin_has_no_range():
    series = Series.of("scores_accuracy", range(50), np.random.default_rng(0).random(50))
    assert not series.has_range
    assert "fill band" not in str(drawings.series_figure("s", series))


def test_the_last_number_of_an_axis_stays_within_the_figure():
    figure = str(drawings.series_figure("s", Series.of("seconds", range(3000), np.arange(3000.0))))
    words, x = re.findall(r'x="([0-9.]+)" y="264" text-anchor="middle">([^<]+)<', figure)[-1][::-1]
    assert words == "3,000"
    assert float(x) + 3.6 * len(words) <= 440


def test_correlations_have_a_scale_from_minus_1_to_1():
    (correlation,) = CanaryCorrelation.of(scores_like(CoinFlip(4), 60))
    strong = replace(correlation, matrix=np.array([[1.0, 0.5, -0.5, 0.0]] * 4))
    figure = str(drawings.correlation_figure("c", strong))
    _, scale = [re.findall(rf'text-anchor="{side}">([^<]+)<', figure) for side in ("end", "middle")]
    assert scale == ["−1", "0", "+1"]
    # A correlation has the colour that the scale has there.
    assert figure.count('class="fill warm"') >= 3 + 20
    assert 'class="fill warm" x="148' in figure
    assert re.search(r'class="fill warm" x="148[^>]*fill-opacity="0.50"', figure)


def test_each_arm_has_a_correlation_figure():
    for correlation in CanaryCorrelation.of(scores_like(LeaveOneOut(5, 3), 40)):
        assert correlation.arm in ("inserted", "held-out")
        assert "itself" in str(drawings.correlation_figure("c", correlation))
