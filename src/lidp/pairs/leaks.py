"""Find the part of the output that leaks, after a claim is refuted, in further runs that the verdict and the bound do not use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lidp._runtime.terminal_text import printable
from lidp.arrays import Bools, Floats
from lidp.errors import LidpError
from lidp.pairs.columns import Columns
from lidp.pairs.runner import Block
from lidp.pairs.views import Cuts, Recurring, choose_views
from lidp.stats.binomial import beta_quantile
from lidp.streams import draw_coins

LOOKS = (64, 256, 1024, 4096, 16_384)
"""Numbers of further runs after which the search looks at them."""
FAILURE_PROBABILITY = 0.001
"""The largest probability with which a part is named that does not leak, over all looks and all parts."""
_ALWAYS = 256
"""Further runs that are spent however few the audit needed."""
_FIRST_BLOCK = 1 << 31
"""Number of the first block of further runs: audits have fewer trials, so these runs have streams of their own."""
_FEWEST = 12
"""Runs of a bin that is tested; in smaller bins no difference is significant."""
_LIKELY = 3.0
"""Standard errors of a difference whose exact probability is worth computing; smaller ones are not significant."""
_RANKING_TAIL = 0.05
"""Tail probability of the limits by which significant differences are ranked."""
_PREFERENCE = 0.1
"""Advantage, as a log-ratio, of an output's own parts over whole outputs, of these over sums and lengths, then two parts."""
_DERIVED = frozenset({"length", "sum", "largest", "index of the largest", "last", "equal to an earlier element"})
_COMPUTED = frozenset({"sum", "largest", "index of the largest", "equal to an earlier element"})
"""Columns that are computed from several parts: with one of the parts, they tell about the others."""
_LONGEST_TEXT = 160
_LONGEST_REASON = 500

RunBlock = Callable[[int, Bools], Block]
"""Runs the block of a number with given coins."""


@dataclass(frozen=True)
class LeakFinding:
    """What the search found.

    Attributes:
        text: the part of the output that leaks, with its counts; or that none was found, and what to do.
        runs: the number of further runs.
        found: whether the text names a part.
    """

    text: str
    runs: int
    found: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Any) -> LeakFinding | None:
        """Return the finding that :meth:`to_dict` described; None for anything else."""
        if not isinstance(plain, dict) or {name: type(value) for name, value in plain.items()} != _FIELDS:
            return None
        return cls(**plain)


_FIELDS = {"text": str, "runs": int, "found": bool}


@dataclass(frozen=True)
class _Difference:
    """A bin of outputs that is significantly more frequent on one data set.

    Attributes:
        counts: its runs on d0 and on d1.
        totals: all runs on d0 and on d1 that gave an output.
        words: the bin in words.
        rank: a lower limit of the absolute log-ratio of its rates, less what its kind is less preferred.
    """

    counts: tuple[int, int]
    totals: tuple[int, int]
    words: str
    rank: float

    def describe(self, runs: int) -> str:
        """Return the bin and its counts as one line."""
        words = printable(" ".join(self.words.split()))[:_LONGEST_TEXT]
        (zero, one), (on_d0, on_d1) = self.counts, self.totals
        return f"{words}: {zero:,} of {on_d0:,} runs on d0, {one:,} of {on_d1:,} on d1 (of {runs:,} further runs)"


def looks_after(used: int) -> tuple[int, ...]:
    """Return the numbers of further runs after which to look, if the audit used so many: up to three times as many, or 256."""
    return tuple(look for look in LOOKS if look <= max(_ALWAYS, 3 * used))


def find_leak(run: RunBlock, seed: int, used: int) -> LeakFinding:
    """Return which part of the output leaks, from further runs of their own random streams.

    Guarantee: a part that is independent of the coin and of the other parts is named with probability at most
    ``FAILURE_PROBABILITY``, alone or together with another part: bins are chosen without the coins, each is tested exactly
    (Fisher's test given its size), all bins of all looks share the probability, and a bin of two parts is named only if each part
    differs among the runs that agree in the other. Columns that are computed from several parts, such as sums, are named alone.
    The verdict and the bound use none of these runs, and no failure of theirs ends the audit.
    """
    evidence = _Evidence()
    done = 0
    for number, look in enumerate(looks_after(used), start=_FIRST_BLOCK):
        coins = draw_coins(seed, trial=number, size=look - done).astype(np.bool_)
        try:
            evidence.add(run(number, coins), coins)
            differences = list(evidence.differences(FAILURE_PROBABILITY / len(LOOKS)))
        except Exception as error:  # noqa: BLE001  # the claim is refuted whatever further runs do: nothing may lose that
            return LeakFinding(f"not found: further runs failed ({_reason(error)})", done, found=False)
        done = look
        if differences:
            return LeakFinding(max(differences, key=lambda one: one.rank).describe(done), done, found=True)
    return LeakFinding(_not_found(done), done, found=False)


def _reason(error: Exception) -> str:
    """Return why further runs failed as one line of a limited length."""
    words = str(error) if isinstance(error, LidpError) else f"{type(error).__name__}: {error}"
    return printable(" ".join(words.split()))[:_LONGEST_REASON]


def _not_found(runs: int) -> str:
    return (
        f"not found in {runs:,} further runs: no part of the output by itself, nor with another one, differs for certain; "
        'add features=, or audit with stop_when="never" and more runs'
    )


class _Evidence:
    """The outputs and coins of all further runs so far."""

    def __init__(self) -> None:
        self._blocks: list[Columns] = []
        self._names: tuple[str, ...] = ()
        self._coins: list[Bools] = []
        self._failed = np.zeros(2, dtype=np.int64)
        self._runs = np.zeros(2, dtype=np.int64)

    def add(self, block: Block, coins: Bools) -> None:
        """Add the runs of a block."""
        self._failed += np.bincount(coins[block.failed].astype(np.int64), minlength=2)
        self._runs += np.bincount(coins.astype(np.int64), minlength=2)
        if block.failed.all():
            return
        columns = block.outputs.look(self._names)
        self._names = columns.names
        self._blocks.append(columns)
        self._coins.append(coins[~block.failed])

    def differences(self, failure_probability: float) -> Iterator[_Difference]:
        """Yield the bins that differ significantly between the data sets, together with this failure probability."""
        tables = [(view, counts) for view in self._views() for counts in [self._count(view)]]
        tested = 1 + sum(int((counts.sum(axis=1) >= _FEWEST).sum()) for _, counts in tables)
        level = failure_probability / tested
        if _fisher(self._failed, self._runs) <= level:
            yield _difference(self._failed, self._runs, "the mechanism raises", 1)
        totals = self._runs - self._failed
        for view, counts in tables:
            for index in _likely_bins(counts, totals):
                strata = [totals, *_strata(view, counts, index)]
                if all(_fisher(counts[index], stratum) <= level for stratum in strata):
                    yield _difference(counts[index], totals, view.describe(index), _order(view))

    def _views(self) -> list[Cuts | Recurring]:
        if not self._blocks:
            return []
        names = tuple(sorted(self._names, key=_is_computed))  # views of two columns are of the first ones
        views = choose_views(names, np.concatenate([columns.select(names) for columns in self._blocks]), self._blocks)
        return [view for view in views if isinstance(view, Recurring) or _are_parts(view.names)]

    def _count(self, view: Cuts | Recurring) -> Any:
        """Return the number of runs of each bin on d0 and on d1."""
        counts = np.zeros((view.bins, 2), dtype=np.int64)
        for columns, coins in zip(self._blocks, self._coins, strict=True):
            bins = view.bins_of(columns)
            np.add.at(counts, (bins[bins >= 0], coins[bins >= 0].astype(np.int64)), 1)
        return counts


def _likely_bins(counts: Any, totals: Any) -> list[int]:
    """Return the bins that are large enough, and different enough, for a significant difference."""
    sizes, runs = counts.sum(axis=1), totals.sum()
    if not totals.all():
        return []
    share = totals[1] / runs
    variance = sizes * share * (1 - share) * (runs - sizes) / max(runs - 1, 1)
    likely = (sizes >= _FEWEST) & (np.abs(counts[:, 1] - sizes * share) > _LIKELY * np.sqrt(variance))
    return [int(index) for index in np.flatnonzero(likely)]


def _are_parts(names: tuple[str, ...]) -> bool:
    """Return whether columns may be named together: none of two is computed from the other one and further parts.

    If one part leaks, and another is noise, then the noise differs among runs of the same sum.
    """
    if len(names) == 1:
        return True
    features = sum(name.startswith("feature ") for name in names)
    return features in (0, len(names)) and not any(map(_is_computed, names))


def _is_computed(name: str) -> bool:
    return name.rpartition(": ")[2] in _COMPUTED


def _strata(view: Cuts | Recurring, counts: Any, index: int) -> list[Any]:
    """Return, for a bin of two columns, the runs that agree with it in one of them, by data set; nothing for other bins."""
    if not isinstance(view, Cuts) or len(view.names) == 1:
        return []
    table = counts.reshape(-1, len(view.cuts[1]) + 2, 2)
    first, second = divmod(index, table.shape[1])
    return [table[first].sum(axis=0), table[:, second].sum(axis=0)]


def _order(view: Cuts | Recurring) -> int:
    """Return the place of a view in the order of preference among views that tell equally much."""
    if isinstance(view, Recurring):
        return 1
    if len(view.names) > 1:
        return 3
    return 2 if view.names[0].rpartition(": ")[2] in _DERIVED else 0


def _difference(counts: Any, totals: Any, words: str, order: int) -> _Difference:
    histogram = np.column_stack([totals - counts, counts])
    lower = beta_quantile(histogram, _RANKING_TAIL, successes=0, failures=1, upper=False)
    upper = beta_quantile(histogram, _RANKING_TAIL, successes=1, failures=0, upper=True)
    ratio = max(lower[1] / upper[0], lower[0] / upper[1])
    zero, one = counts.tolist()
    rank = math.log(max(ratio, 1e-9)) - _PREFERENCE * order
    return _Difference((zero, one), tuple(totals.tolist()), words, rank)


def _fisher(counts: Any, totals: Any) -> float:
    """Return the two-sided p-value of Fisher's exact test: twice the smaller tail of the hypergeometric distribution."""
    (zero, one), (on_d0, on_d1) = counts.tolist(), totals.tolist()
    size = zero + one
    ones = np.arange(max(0, size - on_d0), min(size, on_d1) + 1)
    logs = (
        _log_binomials(on_d1, ones) + _log_binomials(on_d0, size - ones) - _log_binomials(on_d0 + on_d1, np.array([size]))
    )
    chances = np.exp(logs)
    return float(min(1.0, 2 * min(chances[ones <= one].sum(), chances[ones >= one].sum())))


def _log_binomials(n: int, k: Any) -> Floats:
    from scipy.special import gammaln

    logs: Floats = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return logs
