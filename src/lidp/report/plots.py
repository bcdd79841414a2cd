"""Draw the figures of a result with matplotlib, from the same data as those of the HTML report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lidp.errors import InvalidArgument
from lidp.report.curve_figure_data import ClaimedTradeOff, NoiseGauge, TradeOff
from lidp.report.figure_data import BoundPath, CanaryCorrelation, Gauge, ScoreDistributions
from lidp.report.roc import RocCurve, excluded_corners
from lidp.report.trial_facts import TrialFacts
from lidp.report.wording import unit
from lidp.result import AuditResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colours that stay distinct in print and for colour-blind readers.
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#7f7f7f"


class Plots:
    """The figures of a result. Each method returns a matplotlib figure; calling the object returns :meth:`path`."""

    def __init__(self, result: AuditResult) -> None:
        self._result = result

    def __call__(self) -> Figure:
        return self.path()

    def gauge(self) -> Figure:
        """Return the claim (dashed mark) and the bound (bar); of the noise if a curve with an amount of noise was tested."""
        noise = NoiseGauge.of(self._result)
        if noise is not None:
            return _noise_gauge(noise)
        figure = new_figure(6.0, 1.6)
        axes = figure.subplots()
        data = Gauge.of(self._result)
        axes.barh([0], [data.bound], height=0.5, color=RED if data.refuted else BLUE)
        axes.axvline(data.claim, linestyle="--", color="white", linewidth=5)
        axes.axvline(data.claim, linestyle="--", color="black", linewidth=2)
        axes.set_xlim(0, data.most)
        axes.set_ylim(-0.5, 0.5)
        axes.set_yticks([])
        axes.set_xlabel("ε")
        axes.set_title(f"{data.bound_words}, {data.claim_words}")
        return figure

    def path(self) -> Figure:
        """Return the bound by number of trials, with the claim; a dot if the method gives a single bound at the end."""
        figure = new_figure()
        axes = figure.subplots()
        data = BoundPath.of(self._result)
        lines = [(data, BLUE, "-", "lower bound")]
        if data.point is not None:
            lines = [
                (data, BLUE, "-", "lower bound, by the curve"),
                (data.point, ORANGE, "-.", "lower bound, at this δ alone"),
            ]
        for path, colour, style, label in lines:
            if path.has_path:
                axes.step(path.trials, path.epsilons, where="post", color=colour, linestyle=style, label=label)
            else:
                axes.plot(path.trials[-1:], path.epsilons[-1:], "o", color=colour, label=label)
                axes.set_xlim(left=0)
        if data.fell_at is not None:
            axes.axvline(data.fell_at, linestyle=":", color="black", label="curve refuted")
        axes.axhline(data.claim, linestyle="--", color=RED, label="claim")
        axes.set_xlabel(unit(self._result))
        axes.set_ylabel("ε")
        axes.set_ylim(bottom=0)
        axes.set_title(f"{_literal(self._result.target)}: {self._result.verdict}")
        axes.legend()
        return figure

    def scores(self) -> Figure:
        """Return the distributions of the scores of inserted and held-out canaries."""
        figure = new_figure()
        axes = figure.subplots()
        data = ScoreDistributions.of(self._result.scores)
        for label, shares, colour in (("inserted", data.inserted, BLUE), ("held-out", data.held_out, ORANGE)):
            axes.stairs(shares, data.edges, fill=True, alpha=0.3, color=colour)
            axes.stairs(shares, data.edges, color=colour, label=label)
        axes.set_xlabel("score")
        axes.set_ylabel("share")
        axes.legend()
        return figure

    def roc(self) -> Figure:
        """Return the ROC curve with its band and the region that a true claim excludes; the verdict rests on the bound alone."""
        figure = new_figure(5.0, 4.6)
        axes = figure.subplots()
        data = RocCurve.of(self._result)
        tested = self._result.bound.curve
        claim = self._result.claim
        corners = excluded_corners(claim) if tested is None else TradeOff.of(tested, claim.epsilon).excluded_corners()
        for (x, y), label in zip(corners, ("excluded by a true claim", None), strict=True):
            axes.fill(x, y, color=RED, alpha=0.15, linewidth=0, label=label)
        if data.reach_inserted is not None:
            for edge, label in ((data.upper(), "band"), (data.lower(), None)):
                axes.plot(*edge, color=BLUE, linewidth=0.8, linestyle="-.", label=label)
        axes.plot([0, 1], [0, 1], ":", color="grey")
        axes.plot([0, *data.held_out], [0, *data.inserted], color=BLUE, label="ROC")
        axes.set_xlabel("held-out scores at or above the threshold")
        axes.set_ylabel("inserted scores at or above the threshold")
        axes.set_aspect("equal")
        axes.legend(loc="lower right")
        return figure

    def trade_off(self) -> Figure:
        """Return the errors that the claimed curve excludes, the curve that was shown to be exceeded, and the observed errors.

        Raises:
            InvalidArgument: if the audit tested no privacy curve.
        """
        data = ClaimedTradeOff.of(self._result)
        if data is None:
            raise InvalidArgument("there is no trade-off to plot: this audit tested a point (ε, δ), not a privacy curve")
        roc = RocCurve.of(self._result)
        figure = new_figure(5.0, 4.6)
        axes = figure.subplots()
        claimed = data.claimed
        axes.fill_between(
            claimed.false_positives, claimed.false_negatives, color=RED, alpha=0.15, linewidth=0, label="excluded"
        )
        axes.plot([0, 1], [1, 0], ":", color="grey")
        axes.plot(claimed.false_positives, claimed.false_negatives, "--", color=RED, label="claim")
        if data.exceeded is not None:
            other = data.exceeded
            axes.plot(other.false_positives, other.false_negatives, "-.", color="black", label="shown to be exceeded")
        axes.plot([0, *roc.held_out], [1, *(1 - roc.inserted)], color=BLUE, label="observed")
        axes.set_xlabel("false positive rate")
        axes.set_ylabel("false negative rate")
        axes.set_aspect("equal")
        axes.legend(loc="upper right")
        return figure

    def correlation(self) -> Figure:
        """Return the correlations between the canaries of a trial, one panel per arm.

        Raises:
            InvalidArgument: if there is one canary per trial, there are fewer than three trials, or scores never vary.
        """
        correlations = CanaryCorrelation.of(self._result.scores)
        if not correlations:
            raise InvalidArgument(
                "there is no correlation to plot: it needs two canaries per trial, three trials, and scores that vary"
            )
        figure = new_figure(4.6 * len(correlations), 4.2)
        for axes, data in zip(np.atleast_1d(figure.subplots(1, len(correlations))), correlations, strict=True):
            image = axes.imshow(data.matrix, vmin=-1, vmax=1, cmap="RdBu_r")
            axes.set_title(f"{data.arm} canaries, mean {data.mean:.3f}")
        figure.colorbar(image, ax=figure.axes)
        return figure

    def trials(self) -> Figure:
        """Return the seconds and other numbers of the trials, one panel each.

        Raises:
            InvalidArgument: if the result has no notes of its trials.
        """
        facts = TrialFacts.of(self._result.notes)
        if not facts.series:
            raise InvalidArgument("there is nothing to plot: this result has no notes of its trials")
        figure = new_figure(6.0, 2.2 * len(facts.series))
        for axes, data in zip(np.atleast_1d(figure.subplots(len(facts.series), 1)), facts.series, strict=True):
            axes.fill_between(data.last, data.low, data.high, step="pre", color=BLUE, alpha=0.2, linewidth=0)
            axes.step(data.last, data.mean, where="pre", color=BLUE, marker="o" if len(data.last) == 1 else None)
            axes.set_ylabel(_literal(data.name))
        figure.axes[-1].set_xlabel("trial")
        return figure


def _noise_gauge(data: NoiseGauge) -> Figure:
    """Return the claimed noise (dashed mark) and the amounts of noise that are excluded (bar)."""
    figure = new_figure(6.0, 1.6)
    axes = figure.subplots()
    if data.noise is not None:
        axes.barh([0], [data.most - data.noise], left=data.noise, height=0.5, color=RED if data.refuted else BLUE)
    axes.axvline(1.0, linestyle="--", color="white", linewidth=5)
    axes.axvline(1.0, linestyle="--", color="black", linewidth=2)
    axes.set_xlim(0, data.most)
    axes.set_ylim(-0.5, 0.5)
    axes.set_yticks([])
    axes.set_xlabel("noise, in units of the claimed noise")
    axes.set_title(f"{data.noise_words}, {data.claim_words}")
    return figure


def new_figure(width: float = 6.0, height: float = 3.5) -> Figure:
    """Return an empty figure of this size in inches.

    Raises:
        InvalidArgument: if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidArgument("plotting needs matplotlib; install lidp[plot]") from None
    return Figure(figsize=(width, height), layout="constrained")


def _literal(text: str) -> str:
    """Return text that matplotlib does not read as mathematics."""
    return text.replace("$", r"\$")
