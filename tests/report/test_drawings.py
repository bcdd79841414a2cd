"""The figures of the page: axes that make sense, and what must be seen."""

import re
from dataclasses import replace

import numpy as np
import pytest

from lidp import CoinFlip, LeaveOneOut
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
    result = result_like(scores_like(CoinFlip(6), 5))
    figure = str(drawings.roc_figure("r", RocCurve.of(result), result.claim))
    assert figure.count('class="band-line"') == 3  # two edges, and the legend
    assert "fill band" not in figure


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
