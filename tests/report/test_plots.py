"""Figures for matplotlib: each draws its data."""

import io

import numpy as np
import pytest

import lidp
from lidp import CoinFlip, LeaveOneOut, Wilson
from lidp.errors import InvalidArgument
from lidp.report.curve_figure_data import ClaimedTradeOff, NoiseGauge
from lidp.report.figure_data import BoundPath, Gauge, ScoreDistributions
from lidp.report.roc import RocCurve
from tests.report.curve_results import CURVE_RESULTS
from tests.report.results import CASES, pair_result, result_like, scores_like

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("name", ["gauge", "path", "scores", "roc", "correlation", "trials"])
@pytest.mark.parametrize("design", [CoinFlip(6), LeaveOneOut(4, 3)])
def test_every_figure_can_be_saved(name, design):
    figure = getattr(lidp.Plots(result_like(scores_like(design), target="a $ b_{")), name)()
    assert figure.axes
    figure.savefig(io.BytesIO(), format="png")


def test_calling_plots_draws_the_path():
    result = result_like(scores_like(CoinFlip(6)))
    for figure in (lidp.Plots(result)(), lidp.Plots(result).path()):
        data = BoundPath.of(result)
        np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), data.epsilons)


def test_figures_draw_their_data():
    result = result_like(scores_like(CoinFlip(6)))
    roc = RocCurve.of(result)
    curve = lidp.Plots(result).roc().axes[0].lines[-1]
    np.testing.assert_array_equal(curve.get_ydata()[1:], roc.inserted)
    np.testing.assert_array_equal(curve.get_xdata()[1:], roc.held_out)
    steps = [patch for patch in lidp.Plots(result).scores().axes[0].patches if patch.get_label() == "inserted"]
    np.testing.assert_array_equal(steps[0].get_data().values, ScoreDistributions.of(result.scores).inserted)


def test_single_bound_is_a_dot():
    result = result_like(scores_like(CASES["leave"]), Wilson())
    (axes,) = lidp.Plots(result)().axes
    dot = axes.lines[0]
    assert dot.get_xdata().tolist() == [result.bound.trials]
    assert dot.get_ydata().tolist() == [result.bound.epsilon]
    assert dot.get_linestyle() == "None"
    assert dot.get_marker() == "o"


def test_gauge_draws_its_data():
    result = result_like(scores_like(CoinFlip(6)), claim=1.02996)
    data = Gauge.of(result)
    (axes,) = lidp.Plots(result).gauge().axes
    assert axes.patches[0].get_width() == data.bound == result.bound.epsilon
    assert {tuple(line.get_xdata()) for line in axes.lines} == {(1.02996, 1.02996)}
    assert axes.get_xlim() == (0, data.most)
    assert "claimed 1.02996" in axes.get_title()


def test_figure_without_data_is_refused():
    pair = pair_result()
    assert lidp.Plots(pair).path().axes[0].get_xlabel() == "runs"
    assert lidp.Plots(pair).roc().axes
    with pytest.raises(InvalidArgument, match="two canaries per trial"):
        lidp.Plots(pair).correlation()


@pytest.mark.parametrize("name", ["gauge", "path", "scores", "roc", "trade_off"])
@pytest.mark.parametrize("kind", ["refuted", "nothing excluded", "without family"])
def test_every_figure_of_a_curve_can_be_saved(name, kind):
    figure = getattr(lidp.Plots(CURVE_RESULTS[kind]()), name)()
    figure.savefig(io.BytesIO(), format="png")


def test_figures_of_a_curve_draw_their_data():
    result = CURVE_RESULTS["refuted"]()
    noise, path, trade_off = NoiseGauge.of(result), BoundPath.of(result), ClaimedTradeOff.of(result)
    (axes,) = lidp.Plots(result).gauge().axes
    assert (axes.patches[0].get_x(), axes.patches[0].get_width()) == (noise.noise, noise.most - noise.noise)
    lines = {line.get_label(): line for line in lidp.Plots(result).path().axes[0].lines}
    np.testing.assert_array_equal(lines["lower bound, by the curve"].get_ydata(), path.epsilons)
    np.testing.assert_array_equal(lines["lower bound, at this δ alone"].get_ydata(), path.point.epsilons)
    assert set(lines["curve refuted"].get_xdata()) == {result.bound.fell_at}
    lines = {line.get_label(): line for line in lidp.Plots(result).trade_off().axes[0].lines}
    np.testing.assert_array_equal(lines["claim"].get_ydata(), trade_off.claimed.false_negatives)
    np.testing.assert_array_equal(lines["shown to be exceeded"].get_ydata(), trade_off.exceeded.false_negatives)
    np.testing.assert_array_equal(lines["observed"].get_ydata()[1:], 1 - RocCurve.of(result).inserted)


def test_trade_off_of_a_point_is_refused():
    with pytest.raises(InvalidArgument, match="not a privacy curve"):
        lidp.Plots(result_like(scores_like(CoinFlip(6)))).trade_off()
