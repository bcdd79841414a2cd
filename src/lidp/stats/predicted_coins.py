"""``PredictedCoins``: put the coins of each trial in betting order, and predict each before it is revealed."""

from __future__ import annotations

import math

import numpy as np

from lidp.arrays import Bools, Floats
from lidp.errors import InvalidScores
from lidp.scores import Scores
from lidp.stats.coin_predictor import CALIBRATION_SCORES, CoinPredictor, kernels
from lidp.streams import Purpose, trial_words


class PredictedCoins:
    """Coins with predictions, trial by trial, for the runs of wagers.

    The canaries of a trial may come in an order that depends on their coins (all inserted ones first, say). So each trial gets a
    random order, which is a function of its number, unless its scores use coins of lower-index canaries. The first trials serve
    to calibrate the predictor and are not returned.

    With ``log_odds``, scores are predictions already. With ``one_by_one``, every coin is returned as a trial of its own, and its
    prediction uses scores of earlier coins and its own only. ``expected``: see :class:`CoinPredictor`.
    """

    def __init__(self, *, log_odds: bool, one_by_one: bool = False, expected: float | None = None) -> None:
        self.log_odds = log_odds
        self.expected = expected
        self.one_by_one = one_by_one
        self.received = 0
        """the number of trials given so far"""
        self.last: Scores | None = None
        """the trials that were given last"""
        self._waiting: list[tuple[Floats, Bools]] = []
        self._returned = 0  # rows that were returned before the calibration was complete, and those before them
        self._predictor: CoinPredictor | None = None

    def add(self, scores: Scores) -> tuple[Floats, Bools]:
        """Take further trials, in the order of their numbers; return the log-odds and coins of those that may be bet on.

        They are the last ones of those that were given.
        """
        scores.flips()
        if self.last is not None and scores.design != self.last.design:
            raise InvalidScores(f"the run began with {self.last.design}, these trials have {scores.design}")
        self.last = scores
        values, coins = self._in_betting_order(scores)
        self.received += scores.trials
        if self.one_by_one:
            values, coins = values.reshape(-1, 1), coins.reshape(-1, 1)
        if self.log_odds:
            return np.nan_to_num(values, nan=0.0), coins  # of a failed run nothing is predicted
        if self._predictor is None:
            values, coins = self._calibrate(values, coins, scores.sequential)
        if len(values) and self._predictor is not None:
            return self._predictor.predict(values, coins), coins
        return np.nan_to_num(values, nan=0.0), coins

    def _in_betting_order(self, scores: Scores) -> tuple[Floats, Bools]:
        """Return the scores and coins of each trial in the order of wagering, which is a function of the trial's index."""
        values, coins = scores.flips()
        if scores.canaries == 1 or scores.sequential or self.log_odds:
            return values, coins
        words = trial_words(0, range(self.received, self.received + scores.trials), purpose=Purpose.BETTING_ORDER)
        shuffled = np.empty_like(values), np.empty_like(coins)
        kernels().shuffle(values, coins, words[:, 0], *shuffled)
        return shuffled

    def _calibrate(self, values: Floats, coins: Bools, sequential: bool) -> tuple[Floats, Bools]:
        """Collect trials until there are enough scores to calibrate on, and return the trials that may be wagered on.

        These include the trial that completes the calibration: its scores are output, its coins have not been used. Which trials
        are returned depends on their numbers alone, because trials that may be wagered on are charged. If all runs so far have
        failed, they are returned like any failed run, and the first one with scores completes the calibration.
        """
        needed = math.ceil(CALIBRATION_SCORES / values.shape[1])
        if sequential:
            needed += 1  # sequential scores show coins of their own trial: calibrate on trials that are not wagered on
        self._waiting.append((values, coins))
        if sum(len(block) for block, _ in self._waiting) < needed:
            return values[:0], coins[:0]
        values, coins = (np.concatenate(blocks) for blocks in zip(*self._waiting, strict=True))
        first, self._returned = max(needed - 1, self._returned), len(values)
        scored = np.flatnonzero(~np.isnan(values).all(axis=1))
        complete = max(needed, int(scored[0]) + 1 + sequential) if len(scored) else len(values) + 1
        if complete > len(values):
            self._waiting = [(values, coins)]
            return np.full_like(values[first:], np.nan), coins[first:]
        self._predictor = CoinPredictor(values[: complete - 1 if sequential else complete], self.expected)
        self._predictor.predict(values[: complete - 1], coins[: complete - 1])  # learned from, nothing staked
        self._waiting = []
        values[first : complete - 1] = np.nan
        return values[first:], coins[first:]
